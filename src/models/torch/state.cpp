// Building a given state of the allocator, and forcing it into one that a recording shows.
#include <algorithm>

#include "models/torch/allocator.h"

namespace faultline {

SegmentIndex TorchAllocator::add_segment(ListIndex list, ByteRange range, std::uint64_t handle_bytes) {
  if (range.end <= range.begin || range.size() > kTorchLargestRequest * 4) return kNoIndex;
  const auto above = segments_by_address_.lower_bound(range.begin);
  if (above != segments_by_address_.end() &&
      (above->first == range.begin || (handle_bytes == 0 && above->first < range.end)))
    return kNoIndex;
  if (above != segments_by_address_.begin()) {
    const TorchSegment& below = segments_[std::prev(above)->second];
    // How far a reservation reaches is not recorded, so only what is mapped can be in the way.
    if (!below.expandable() && below.address + below.size_bytes > range.begin) return kNoIndex;
  }
  SegmentIndex index;
  if (unused_segments_.empty()) {
    index = static_cast<SegmentIndex>(segments_.size());
    segments_.emplace_back();
  } else {
    index = unused_segments_.back();
    unused_segments_.pop_back();
  }
  segments_[index] = {range.begin, range.size(), handle_bytes, 0, list, kNoIndex, true, true};
  segments_by_address_.emplace(range.begin, index);
  if (handle_bytes == 0)
    add_reserved(range.size());
  else
    ++expandable_count_;
  return index;
}

BlockIndex TorchAllocator::append_block(SegmentIndex segment, BlockIndex last, std::uint64_t size_bytes, State state,
                                        AllocationId allocation) {
  const std::uint64_t address =
      last == kNoIndex ? segments_[segment].address : blocks_[last].address + blocks_[last].size_bytes;
  const BlockIndex index = new_block(address, size_bytes, segments_[segment].list, segment, state);
  blocks_[index].previous = last;
  if (last == kNoIndex) {
    segments_[segment].first = index;
  } else {
    if (blocks_[last].state == State::kFree && is_alone(blocks_[last]))
      --pools_[lists_[blocks_[last].list].pool].whole_free;
    blocks_[last].next = index;
  }
  if (segments_[segment].expandable() && state != State::kUnmapped) {
    segments_[segment].mapped_bytes += size_bytes;
    add_reserved(size_bytes);
  }
  switch (state) {
    case State::kFree: insert_free(index); break;
    case State::kUnmapped: lists_[segments_[segment].list].holes.insert({address, index}); break;
    case State::kAllocated:
      blocks_[index].allocation = allocation;
      allocated_bytes_ += size_bytes;
      peak_allocated_bytes_ = std::max(peak_allocated_bytes_, allocated_bytes_);
      break;
    case State::kPending:
    case State::kGone: break;
  }
  return index;
}

// Blocks still handed out lose their place: they live on outside every segment until they are freed.
void TorchAllocator::drop_segment(SegmentIndex segment_index) {
  TorchSegment& segment = segments_[segment_index];
  for (BlockIndex at = segment.first; at != kNoIndex;) {
    TorchBlock& block = blocks_[at];
    const BlockIndex next = block.next;
    if (block.state == State::kAllocated || block.state == State::kPending) {
      block.list = kNoIndex;
      block.segment = kNoIndex;
      block.previous = block.next = kNoIndex;
    } else {
      if (block.state == State::kFree) erase_free(at);
      if (block.state == State::kUnmapped) lists_[block.list].holes.erase({block.address, at});
      recycle(at);
    }
    at = next;
  }
  reserved_bytes_ -= segment.expandable() ? segment.mapped_bytes : segment.size_bytes;
  if (segment.expandable()) --expandable_count_;
  segments_by_address_.erase(segment.address);
  segment.live = false;
  unused_segments_.push_back(segment_index);
}

std::size_t TorchAllocator::move_segment(SegmentIndex segment_index, std::uint32_t arena) {
  const SegmentOwner owner = owner_of(segments_[segment_index].list);
  const ListIndex list = list_for(arena, owner.is_small, owner.stream);
  segments_[segment_index].list = list;
  std::size_t count = 0;
  for (BlockIndex at = segments_[segment_index].first; at != kNoIndex; at = blocks_[at].next, ++count) {
    const std::uint32_t mark = blocks_[at].mark;
    if (blocks_[at].state == State::kFree) erase_free(at);
    if (blocks_[at].state == State::kUnmapped) lists_[blocks_[at].list].holes.erase({blocks_[at].address, at});
    blocks_[at].list = list;
    if (blocks_[at].state == State::kFree) insert_free(at);
    if (blocks_[at].state == State::kUnmapped) lists_[list].holes.insert({blocks_[at].address, at});
    blocks_[at].mark = mark;
  }
  return count;
}

SegmentIndex TorchAllocator::segment_at(std::uint64_t address) const {
  auto at = segments_by_address_.upper_bound(address);
  if (at == segments_by_address_.begin()) return kNoIndex;
  --at;
  const TorchSegment& segment = segments_[at->second];
  return address - segment.address < segment.size_bytes ? at->second : kNoIndex;
}

BlockIndex TorchAllocator::force(std::uint64_t address, std::uint64_t rounded_bytes, AllocationId allocation) {
  BlockIndex found = kNoIndex;
  if (const SegmentIndex segment = segment_at(address); segment != kNoIndex) {
    for (BlockIndex at = segments_[segment].first; at != kNoIndex && walk_budget_ != 0;
         at = blocks_[at].next, --walk_budget_) {
      const TorchBlock& block = blocks_[at];
      if (address - block.address >= block.size_bytes) continue;
      if (block.state == State::kFree && block.address + block.size_bytes - address >= rounded_bytes) found = at;
      break;
    }
  }
  if (found == kNoIndex) {
    const BlockIndex outside = new_block(address, rounded_bytes, kNoIndex, kNoIndex, State::kAllocated);
    blocks_[outside].allocation = allocation;
    allocated_bytes_ += rounded_bytes;
    peak_allocated_bytes_ = std::max(peak_allocated_bytes_, allocated_bytes_);
    return outside;
  }
  if (const std::uint64_t before_bytes = address - blocks_[found].address; before_bytes != 0) {
    erase_free(found);
    split_after(found, before_bytes, State::kFree);
    insert_free(found);
    found = blocks_[found].next;
  }
  claim(found, rounded_bytes, allocation);
  return found;
}

bool TorchAllocator::force_map(ByteRange range) {
  const SegmentIndex segment = segment_at(range.begin);
  if (segment == kNoIndex || !segments_[segment].expandable()) return false;
  const List& list = lists_[segments_[segment].list];
  auto at = list.holes.upper_bound({range.begin, kNoIndex});
  if (at == list.holes.begin()) return false;
  BlockIndex hole = std::prev(at)->second;
  const std::uint64_t before_bytes = range.begin - blocks_[hole].address;
  if (blocks_[hole].segment != segment || blocks_[hole].size_bytes < before_bytes ||
      blocks_[hole].size_bytes - before_bytes < range.size())
    return false;
  if (before_bytes != 0) {
    split_after(hole, before_bytes, State::kUnmapped);
    hole = blocks_[hole].next;
  }
  make_mapped(hole, range.size());
  return true;
}

bool TorchAllocator::force_unmap(ByteRange range) {
  const SegmentIndex segment = segment_at(range.begin);
  if (segment == kNoIndex || !segments_[segment].expandable()) return false;
  for (BlockIndex at = segments_[segment].first; at != kNoIndex && walk_budget_ != 0;
       at = blocks_[at].next, --walk_budget_) {
    const TorchBlock& block = blocks_[at];
    if (range.begin - block.address >= block.size_bytes) continue;
    if (block.state != State::kFree || !ByteRange::of(block.address, block.size_bytes).contains(range)) return false;
    SilentDriver silent;
    unmap(at, range, silent);
    return true;
  }
  return false;
}

}  // namespace faultline
