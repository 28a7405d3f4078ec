#include "models/bfc/pool.h"

#include <algorithm>

#include "base/result.h"

namespace faultline {

std::uint64_t bfc_less(std::uint64_t region_bytes) {
  const auto share = static_cast<std::uint64_t>(static_cast<float>(region_bytes) * 0.9f);
  const std::uint64_t less = bfc_rounded(share);
  return less < region_bytes ? less : region_bytes - std::min(region_bytes, kBfcUnit);
}

BfcPool::BfcPool(const BfcSettings& settings) : settings_(settings) {
  const std::uint64_t first = settings.growth ? std::min(settings.limit_bytes, kBfcFirstRegion) : settings.limit_bytes;
  next_region_bytes_ = std::max(bfc_rounded(first), kBfcUnit);
}

BfcChunkIndex BfcPool::new_chunk(std::uint64_t address, std::uint64_t size_bytes) {
  auto index = static_cast<BfcChunkIndex>(chunks_.size());
  if (unused_.empty()) {
    chunks_.emplace_back();
  } else {
    index = unused_.back();
    unused_.pop_back();
    chunks_[index] = {};
  }
  chunks_[index].address = address;
  chunks_[index].size_bytes = size_bytes;
  by_address_[address] = index;
  return index;
}

void BfcPool::drop_chunk(BfcChunkIndex index) {
  by_address_.erase(chunks_[index].address);
  unused_.push_back(index);
}

BfcChunkIndex BfcPool::find(std::uint64_t rounded_bytes) const {
  const FreeIndex::Cursor best = free_.first_at_least(rounded_bytes);
  return best.at == nullptr ? kNoChunk : best.at->block;
}

// Cuts a chunk that is not in the index; the rest is free.
void BfcPool::split(BfcChunkIndex index, std::uint64_t size_bytes) {
  const BfcChunkIndex rest = new_chunk(chunks_[index].address + size_bytes, chunks_[index].size_bytes - size_bytes);
  BfcChunk& front = chunks_[index];
  BfcChunk& back = chunks_[rest];
  back.previous = index;
  back.next = front.next;
  if (back.next != kNoChunk) chunks_[back.next].previous = rest;
  front.size_bytes = size_bytes;
  front.next = rest;
  free_.insert({back.size_bytes, back.address, rest});
}

void BfcPool::put_in_use(BfcChunkIndex index, std::uint64_t bytes, AllocationId id) {
  BfcChunk& chunk = chunks_[index];
  chunk.allocation = id;
  chunk.requested_bytes = bytes;
  in_use_bytes_ += chunk.size_bytes;
  requested_bytes_ += bytes;
  peak_in_use_bytes_ = std::max(peak_in_use_bytes_, in_use_bytes_);
}

BfcChunkIndex BfcPool::claim(BfcChunkIndex index, std::uint64_t bytes, AllocationId id) {
  const std::uint64_t rounded = bfc_rounded(bytes);
  const std::uint64_t size = chunks_[index].size_bytes;
  FAULTLINE_CHECK(!chunks_[index].in_use() && size >= rounded && id.value != 0);
  free_.erase(size, chunks_[index].address);
  if (size / 2 >= rounded || size - rounded >= settings_.left_whole_below_bytes) {
    if (size > rounded) split(index, rounded);
  }
  put_in_use(index, bytes, id);
  return index;
}

BfcChunkIndex BfcPool::allocate(std::uint64_t bytes, AllocationId id, BfcDriver& driver) {
  if (bytes == 0 || bytes > kBfcLargestRequest) return kNoChunk;
  const std::uint64_t rounded = bfc_rounded(bytes);
  BfcChunkIndex found = find(rounded);
  if (found == kNoChunk && extend(rounded, driver)) found = find(rounded);
  if (found == kNoChunk && collect(rounded, driver) && extend(rounded, driver)) found = find(rounded);
  return found == kNoChunk ? kNoChunk : claim(found, bytes, id);
}

std::uint64_t BfcPool::available_bytes() const {
  const std::uint64_t left = settings_.limit_bytes - std::min(settings_.limit_bytes, reserved_bytes_);
  return left / kBfcUnit * kBfcUnit;
}

std::uint64_t BfcPool::largest_free_bytes() const {
  const FreeIndex::Cursor last = free_.last();
  return last.at == nullptr ? 0 : last.at->size_bytes;
}

bool BfcPool::extend(std::uint64_t rounded_bytes, BfcDriver& driver) {
  const std::uint64_t available = available_bytes();
  if (rounded_bytes > available) return false;
  bool doubled = false;
  while (next_region_bytes_ < rounded_bytes) {
    next_region_bytes_ *= 2;
    doubled = true;
  }
  std::uint64_t size = std::min(next_region_bytes_, available);
  std::optional<ByteRange> region = driver.take(size);
  while (!region) {
    size = bfc_less(size);
    if (size < rounded_bytes) return false;
    region = driver.take(size);
  }
  if (!doubled) next_region_bytes_ = std::min(next_region_bytes_ * 2, kBfcNoLimit);
  return add_region(*region);
}

bool BfcPool::add_region(ByteRange region) {
  if (region.empty() || region.begin == 0) return false;
  const auto above = regions_.lower_bound(region.begin);
  if (above != regions_.end() && above->first < region.end) return false;
  if (above != regions_.begin() && std::prev(above)->first + std::prev(above)->second.size_bytes > region.begin)
    return false;
  const BfcChunkIndex index = new_chunk(region.begin, region.size());
  free_.insert({region.size(), region.begin, index});
  regions_.emplace_hint(above, region.begin, Region{region.size(), index});
  reserved_bytes_ += region.size();
  peak_reserved_bytes_ = std::max(peak_reserved_bytes_, reserved_bytes_);
  ++regions_taken_;
  return true;
}

// Free neighbours are always merged, so an empty region is one chunk.
bool BfcPool::is_empty(const Region& region) const {
  const BfcChunk& first = chunks_[region.first];
  return !first.in_use() && first.next == kNoChunk;
}

void BfcPool::remove_region(std::map<std::uint64_t, Region>::iterator at) {
  const BfcChunk& chunk = chunks_[at->second.first];
  free_.erase(chunk.size_bytes, chunk.address);
  drop_chunk(at->second.first);
  reserved_bytes_ -= at->second.size_bytes;
  ++regions_returned_;
  regions_.erase(at);
}

bool BfcPool::drop_region(std::uint64_t address) {
  const auto at = regions_.find(address);
  if (at == regions_.end() || !is_empty(at->second)) return false;
  remove_region(at);
  return true;
}

bool BfcPool::collect(std::uint64_t rounded_bytes, BfcDriver& driver) {
  if (!settings_.garbage_collection) return false;
  std::uint64_t empty_bytes = 0;
  for (const auto& [address, region] : regions_) empty_bytes += is_empty(region) ? region.size_bytes : 0;
  const std::uint64_t left = settings_.limit_bytes - std::min(settings_.limit_bytes, reserved_bytes_);
  if (empty_bytes == 0 || rounded_bytes > left + empty_bytes) return false;
  for (auto at = regions_.begin(); at != regions_.end();) {
    const auto here = at++;
    if (!is_empty(here->second)) continue;
    driver.give_back(ByteRange::of(here->first, here->second.size_bytes));
    remove_region(here);
  }
  ++collections_;
  return true;
}

void BfcPool::merge_with_next(BfcChunkIndex index) {
  BfcChunk& chunk = chunks_[index];
  const BfcChunkIndex gone = chunk.next;
  chunk.size_bytes += chunks_[gone].size_bytes;
  chunk.next = chunks_[gone].next;
  if (chunk.next != kNoChunk) chunks_[chunk.next].previous = index;
  drop_chunk(gone);
}

void BfcPool::make_free(BfcChunkIndex index) {
  const auto take_out = [&](BfcChunkIndex at) { free_.erase(chunks_[at].size_bytes, chunks_[at].address); };
  const BfcChunkIndex next = chunks_[index].next;
  if (next != kNoChunk && !chunks_[next].in_use()) {
    take_out(next);
    merge_with_next(index);
  }
  const BfcChunkIndex previous = chunks_[index].previous;
  if (previous != kNoChunk && !chunks_[previous].in_use()) {
    take_out(previous);
    merge_with_next(previous);
    index = previous;
  }
  free_.insert({chunks_[index].size_bytes, chunks_[index].address, index});
}

void BfcPool::free(BfcChunkIndex index) {
  BfcChunk& chunk = chunks_[index];
  FAULTLINE_CHECK(chunk.in_use());
  in_use_bytes_ -= chunk.size_bytes;
  requested_bytes_ -= chunk.requested_bytes;
  chunk.allocation = {};
  chunk.requested_bytes = 0;
  make_free(index);
}

BfcChunkIndex BfcPool::force(std::uint64_t address, std::uint64_t chunk_bytes, std::uint64_t requested_bytes,
                             AllocationId id) {
  if (chunk_bytes == 0 || id.value == 0) return kNoChunk;
  const auto above = by_address_.upper_bound(address);
  if (above == by_address_.begin()) return kNoChunk;
  BfcChunkIndex at = std::prev(above)->second;
  if (address - chunks_[at].address >= chunks_[at].size_bytes) return kNoChunk;
  if (chunks_[at].in_use()) return kNoChunk;
  const std::uint64_t before = address - chunks_[at].address;
  if (chunks_[at].size_bytes - before < chunk_bytes) return kNoChunk;
  free_.erase(chunks_[at].size_bytes, chunks_[at].address);
  if (before != 0) {
    split(at, before);
    free_.insert({chunks_[at].size_bytes, chunks_[at].address, at});
    at = chunks_[at].next;
    free_.erase(chunks_[at].size_bytes, chunks_[at].address);
  }
  if (chunks_[at].size_bytes > chunk_bytes) split(at, chunk_bytes);
  put_in_use(at, requested_bytes, id);
  return at;
}

}  // namespace faultline
