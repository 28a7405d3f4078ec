#include "models/torch/allocator.h"

#include <algorithm>
#include <bit>

namespace faultline {

TorchAllocator::TorchAllocator(const TorchSettings& settings, const TorchTraits& traits,
                               std::span<const Stream> streams)
    : settings_(settings), traits_(traits) {
  stream_handles_.reserve(streams.size());
  for (const Stream& stream : streams) stream_handles_.push_back(stream.handle);
  rounds_up_ = std::any_of(settings.roundup_divisions.begin(), settings.roundup_divisions.end(),
                           [](std::uint32_t d) { return d != 0; });
  add_arena(false);
}

std::uint32_t TorchAllocator::add_arena(bool is_private) {
  arenas_.push_back({is_private, false});
  pools_.resize(arenas_.size() * 2);
  return static_cast<std::uint32_t>(arenas_.size() - 1);
}

bool TorchAllocator::expandable_in(std::uint32_t arena) const {
  if (!settings_.expandable) return false;
  return !arenas_[arena].is_private || (traits_.expandable_private_pools && !arenas_[arena].own_allocator);
}

ListIndex TorchAllocator::look_up_list(std::uint32_t pool, StreamId stream) {
  const std::uint64_t key = std::uint64_t{pool} << 32 | stream.value;
  RecentList& recent = recent_lists_[(pool ^ stream.value * 2u) % recent_lists_.size()];
  const auto [at, fresh] = list_numbers_.try_emplace(key, static_cast<ListIndex>(lists_.size()));
  if (fresh) {
    List& list = lists_.emplace_back();
    list.pool = pool;
    list.stream = stream;
    pools_[pool].lists.push_back(at->second);
    pools_[pool].lists_sorted = false;
  }
  recent = {key, at->second};
  return at->second;
}

const std::vector<ListIndex>& TorchAllocator::lists_of(std::uint32_t number) const {
  Pool& pool = pools_[number];
  if (!pool.lists_sorted) {
    const auto handle = [&](ListIndex list) {
      const std::size_t stream = lists_[list].stream.index();
      return stream < stream_handles_.size() ? stream_handles_[stream] : stream;
    };
    std::sort(pool.lists.begin(), pool.lists.end(),
              [&](ListIndex a, ListIndex b) { return std::pair(handle(a), a) < std::pair(handle(b), b); });
    pool.lists_sorted = true;
  }
  return pool.lists;
}

SegmentOwner TorchAllocator::owner_of(ListIndex list) const {
  return {lists_[list].pool / 2, lists_[list].stream, lists_[list].is_small()};
}

std::uint64_t TorchAllocator::round_by_divisions(std::uint64_t size_bytes) const {
  const int exponent = 63 - std::countl_zero(size_bytes);
  const std::size_t interval =
      exponent <= 20 ? 0 : std::min<std::size_t>(static_cast<std::size_t>(exponent - 20), kRoundupIntervals - 1);
  const std::uint64_t divisions = settings_.roundup_divisions[interval];
  if (divisions > 1 && size_bytes > kTorchSmallestBlock * divisions) {
    if (std::has_single_bit(size_bytes)) return size_bytes;
    const std::uint64_t floor = 1ull << exponent;
    const std::uint64_t step = floor >> (63 - std::countl_zero(divisions));
    if (step == 0) return floor << 1;
    return (size_bytes + step - 1) & ~(step - 1);
  }
  if (divisions == 1 && traits_.one_division_keeps_size && size_bytes > kTorchSmallestBlock) return size_bytes;
  return (size_bytes + kTorchSmallestBlock - 1) & ~(kTorchSmallestBlock - 1);
}

std::uint64_t TorchAllocator::segment_bytes(std::uint64_t rounded_bytes) const {
  return TorchSegmentSizes{kTorchSmallSegment, settings_.large_segment_bytes}.segment_bytes(rounded_bytes);
}

BlockIndex TorchAllocator::find(ListIndex list, std::uint64_t rounded_bytes) const {
  const FreeIndex::Cursor found = search(lists_[list], rounded_bytes);
  return found.at == nullptr ? kNoIndex : found.at->block;
}

FreeIndex::Cursor TorchAllocator::search(const List& list, std::uint64_t rounded_bytes) const {
  FreeIndex::Cursor found = list.index.first_at_least(rounded_bytes);
  if (found.at == nullptr) return found;
  if (expandable_count_ != 0 && segments_[blocks_[found.at->block].segment].expandable()) {
    found = search_past_expandable(list, found);
    if (found.at == nullptr) return found;
  }
  const std::uint64_t size_bytes = found.at->size_bytes;
  if (rounded_bytes < settings_.max_split_bytes) {
    if (size_bytes >= settings_.max_split_bytes) return {};
  } else if (size_bytes >= rounded_bytes + settings_.max_non_split_rounding_bytes) {
    return {};
  }
  return found;
}

// The first fit is in an expandable segment. Where those are on, a block counts as large as it could grow, so a block that cannot grow is
// preferred to the growing end; where they have been turned off, blocks of expandable segments are passed over.
FreeIndex::Cursor TorchAllocator::search_past_expandable(const List& list, FreeIndex::Cursor at) const {
  const auto in_expandable = [&](const FreeEntry* entry) {
    return segments_[blocks_[entry->block].segment].expandable();
  };
  if (expandable_in(list.pool / 2)) {
    std::uint64_t growable = growable_bytes(blocks_[at.at->block]);
    while (growable != at.at->size_bytes && in_expandable(at.at)) {
      const FreeIndex::Cursor next = list.index.next(at);
      if (next.at == nullptr) break;
      const std::uint64_t next_growable = growable_bytes(blocks_[next.at->block]);
      if (next_growable >= growable) break;
      at = next;
      growable = next_growable;
    }
    return at;
  }
  // No program leaves so many behind; a recording that says so must not make each of its requests go through them all.
  constexpr int kMostPassedOver = 1024;
  for (int passed_over = 0; passed_over < kMostPassedOver; ++passed_over) {
    at = list.index.next(at);
    if (at.at == nullptr || !in_expandable(at.at)) return at;
  }
  return {};
}

bool TorchAllocator::split_worth_it(const TorchBlock& block, std::uint64_t rounded_bytes) const {
  const std::uint64_t rest = block.size_bytes - rounded_bytes;
  const List& list = lists_[block.list];
  if (list.is_small() ||
      (settings_.expandable && (traits_.expandable_splits_everywhere || expandable_in(list.pool / 2)))) {
    return rest >= kTorchSmallestBlock;
  }
  return rounded_bytes < settings_.max_split_bytes && rest > kTorchSmallRequest;
}

BlockIndex TorchAllocator::obtain(ListIndex list, std::uint64_t rounded_bytes, TorchDriver& driver) {
  const std::uint64_t size_bytes = segment_bytes(rounded_bytes);
  if (limit_bytes_ && reserved_bytes_ + size_bytes > *limit_bytes_) return kNoIndex;
  const SegmentOwner owner = owner_of(list);
  if (expandable_in(owner.arena)) return grow(list, rounded_bytes, driver);
  const std::optional<ByteRange> range = driver.take(size_bytes, owner);
  if (!range || range->size() < rounded_bytes) return kNoIndex;
  const SegmentIndex segment = add_segment(list, *range, 0);
  if (segment == kNoIndex) return kNoIndex;
  ++segments_taken_;
  return append_block(segment, kNoIndex, range->size(), State::kGone, {});
}

void TorchAllocator::claim(BlockIndex block, std::uint64_t rounded_bytes, AllocationId allocation) {
  erase_free(block);
  hand_out(block, rounded_bytes, allocation);
}

void TorchAllocator::claim_new(BlockIndex block, std::uint64_t rounded_bytes, AllocationId allocation) {
  hand_out(block, rounded_bytes, allocation);
}

void TorchAllocator::hand_out(BlockIndex index, std::uint64_t rounded_bytes, AllocationId allocation) {
  if (split_worth_it(blocks_[index], rounded_bytes)) split_after(index, rounded_bytes, State::kFree);
  TorchBlock& block = blocks_[index];
  block.state = State::kAllocated;
  block.allocation = allocation;
  allocated_bytes_ += block.size_bytes;
  peak_allocated_bytes_ = std::max(peak_allocated_bytes_, allocated_bytes_);
}

void TorchAllocator::request_free(BlockIndex index) {
  TorchBlock& block = blocks_[index];
  allocated_bytes_ -= block.size_bytes;
  block.state = State::kPending;
  block.mark = static_cast<std::uint32_t>(pending_.size());
  pending_.push_back(index);
}

void TorchAllocator::remove_from_pending(BlockIndex index) {
  const std::uint32_t place = blocks_[index].mark;
  pending_[place] = pending_.back();
  blocks_[pending_[place]].mark = place;
  pending_.pop_back();
}

void TorchAllocator::complete_free(BlockIndex index) {
  remove_from_pending(index);
  return_block(index);
}

void TorchAllocator::free_now(BlockIndex index) {
  allocated_bytes_ -= blocks_[index].size_bytes;
  return_block(index);
}

// Back among the free blocks of its list; a block that stood in none is gone.
void TorchAllocator::return_block(BlockIndex index) {
  if (blocks_[index].list == kNoIndex) {
    recycle(index);
    return;
  }
  blocks_[index].allocation = {};
  merge_neighbours(index, State::kFree);
  insert_free(index);
}

void TorchAllocator::complete_pending() {
  while (!pending_.empty()) {
    if (tell_early_completion_) tell_early_completion_(blocks_[pending_.back()].allocation);
    complete_free(pending_.back());
  }
}

BlockIndex TorchAllocator::new_block(std::uint64_t address, std::uint64_t size_bytes, ListIndex list,
                                     SegmentIndex segment, State state) {
  BlockIndex index;
  if (unused_blocks_.empty()) {
    index = static_cast<BlockIndex>(blocks_.size());
    blocks_.emplace_back();
  } else {
    index = unused_blocks_.back();
    unused_blocks_.pop_back();
  }
  blocks_[index] = {address, size_bytes, kNoIndex, kNoIndex, list, segment, 0, {}, state};
  return index;
}

void TorchAllocator::recycle(BlockIndex index) {
  blocks_[index].state = State::kGone;
  blocks_[index].allocation = {};
  unused_blocks_.push_back(index);
}

void TorchAllocator::insert_free(BlockIndex index) {
  TorchBlock& block = blocks_[index];
  List& list = lists_[block.list];
  block.state = State::kFree;
  block.mark = pools_[list.pool].searches;
  list.index.insert({block.size_bytes, block.address, index});
  ++free_blocks_;
  pools_[list.pool].whole_free += is_alone(block) ? 1 : 0;
}

void TorchAllocator::erase_free(BlockIndex index) {
  const TorchBlock& block = blocks_[index];
  List& list = lists_[block.list];
  list.index.erase(block.size_bytes, block.address);
  --free_blocks_;
  pools_[list.pool].whole_free -= is_alone(block) ? 1 : 0;
}

void TorchAllocator::merge_neighbours(BlockIndex index, State same) {
  TorchBlock& block = blocks_[index];
  const auto forget = [&](BlockIndex neighbour) {
    if (same == State::kFree)
      erase_free(neighbour);
    else
      lists_[block.list].holes.erase({blocks_[neighbour].address, neighbour});
    recycle(neighbour);
  };
  if (const BlockIndex previous = block.previous; previous != kNoIndex && blocks_[previous].state == same) {
    block.address = blocks_[previous].address;
    block.size_bytes += blocks_[previous].size_bytes;
    block.previous = blocks_[previous].previous;
    if (block.previous != kNoIndex)
      blocks_[block.previous].next = index;
    else
      segments_[block.segment].first = index;
    forget(previous);
  }
  if (const BlockIndex next = block.next; next != kNoIndex && blocks_[next].state == same) {
    block.size_bytes += blocks_[next].size_bytes;
    block.next = blocks_[next].next;
    if (block.next != kNoIndex) blocks_[block.next].previous = index;
    forget(next);
  }
}

void TorchAllocator::split_after(BlockIndex index, std::uint64_t size_bytes, State rest_state) {
  const BlockIndex rest = new_block(blocks_[index].address + size_bytes, blocks_[index].size_bytes - size_bytes,
                                    blocks_[index].list, blocks_[index].segment, rest_state);
  TorchBlock& block = blocks_[index];
  blocks_[rest].previous = index;
  blocks_[rest].next = block.next;
  if (block.next != kNoIndex) blocks_[block.next].previous = rest;
  block.next = rest;
  block.size_bytes = size_bytes;
  if (rest_state == State::kFree)
    insert_free(rest);
  else
    lists_[block.list].holes.insert({blocks_[rest].address, rest});
}

void TorchAllocator::add_reserved(std::uint64_t size_bytes) {
  reserved_bytes_ += size_bytes;
  peak_reserved_bytes_ = std::max(peak_reserved_bytes_, reserved_bytes_);
}

BlockIndex TorchAllocator::allocate(ListIndex list, std::uint64_t rounded_bytes, AllocationId allocation,
                                    std::span<const std::uint32_t> freeable, TorchDriver& driver) {
  note_search(list);
  if (const FreeIndex::Cursor found = search(lists_[list], rounded_bytes); found.at != nullptr) {
    const BlockIndex block = found.at->block;
    lists_[list].index.erase(found);
    --free_blocks_;
    pools_[lists_[list].pool].whole_free -= is_alone(blocks_[block]) ? 1 : 0;
    hand_out(block, rounded_bytes, allocation);
    return block;
  }
  if (limit_bytes_ && settings_.gc_threshold > 0) {
    const auto threshold = static_cast<std::uint64_t>(settings_.gc_threshold * static_cast<double>(*limit_bytes_));
    if (reserved_bytes_ > threshold) {
      for (const BlockIndex block : plan_collection(reserved_bytes_ - threshold, kNoIndex))
        release_segment(block, driver);
    }
  }
  BlockIndex block = obtain(list, rounded_bytes, driver);
  if (block == kNoIndex) {
    const Available available = plan_available(list, rounded_bytes);
    for (const BlockIndex cached : available.blocks) release_segment(cached, driver);
    if (available.enough) block = obtain(list, rounded_bytes, driver);
  }
  // While a private pool is in use PyTorch does not empty the cache: a capture may be under way.
  if (block == kNoIndex && !arenas_[arena_of(list)].is_private) {
    empty_cache(freeable, driver);
    ++cache_flushes_;
    block = obtain(list, rounded_bytes, driver);
  }
  if (block != kNoIndex) claim_new(block, rounded_bytes, allocation);
  return block;
}

void TorchAllocator::empty_cache(std::span<const std::uint32_t> freeable, TorchDriver& driver) {
  complete_pending();
  for (const TorchRelease& step : plan_cached(0)) release(step, driver);
  for (const std::uint32_t arena : freeable) {
    for (const TorchRelease& step : plan_cached(arena)) release(step, driver);
  }
}

}  // namespace faultline
