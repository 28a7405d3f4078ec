// Expandable segments: addresses reserved once per (pool, stream), memory mapped behind them in whole handles as it is needed.
#include <algorithm>

#include "models/torch/allocator.h"

namespace faultline {

std::uint64_t TorchAllocator::growable_bytes(const TorchBlock& block) const {
  const bool grows = block.next != kNoIndex && blocks_[block.next].state == State::kUnmapped;
  return block.size_bytes + (grows ? blocks_[block.next].size_bytes : 0);
}

// The lowest place where free and unmapped blocks in a row have room: a free block right before the first unmapped one counts.
BlockIndex TorchAllocator::find_room(const List& list, std::uint64_t rounded_bytes) const {
  const auto usable = [&](BlockIndex block) {
    return block != kNoIndex && (blocks_[block].state == State::kFree || blocks_[block].state == State::kUnmapped);
  };
  std::uint64_t known_short = 0;  // starts below this address lead into the row that was too short
  for (const auto& [address, hole] : list.holes) {
    if (address < known_short) continue;
    const BlockIndex start = usable(blocks_[hole].previous) ? blocks_[hole].previous : hole;
    std::uint64_t room = 0;
    BlockIndex at = start;
    while (room < rounded_bytes && usable(at)) {
      room += blocks_[at].size_bytes;
      known_short = blocks_[at].address + blocks_[at].size_bytes;
      at = blocks_[at].next;
    }
    if (room >= rounded_bytes) return start;
  }
  return kNoIndex;
}

bool TorchAllocator::room_elsewhere(ListIndex list, std::uint64_t rounded_bytes, std::uint64_t address) const {
  const BlockIndex start = find_room(lists_[list], rounded_bytes);
  if (start == kNoIndex) return false;
  const BlockIndex hole = blocks_[start].state == State::kUnmapped ? start : blocks_[start].next;
  return blocks_[hole].address != address;
}

BlockIndex TorchAllocator::grow(ListIndex list, std::uint64_t rounded_bytes, TorchDriver& driver) {
  BlockIndex block = find_room(lists_[list], rounded_bytes);
  if (block == kNoIndex) {
    const SegmentOwner owner = owner_of(list);
    const std::uint64_t step_bytes = handle_bytes(owner.is_small);
    const std::optional<ByteRange> range = driver.reserve(step_bytes, owner);
    if (!range || range->size() < rounded_bytes) return kNoIndex;
    const SegmentIndex segment = add_segment(list, *range, step_bytes);
    if (segment == kNoIndex) return kNoIndex;
    block = append_block(segment, kNoIndex, range->size(), State::kUnmapped, {});
  }
  if (blocks_[block].state == State::kUnmapped &&
      !map_front(block, std::min(blocks_[block].size_bytes, rounded_bytes), driver))
    return kNoIndex;
  while (blocks_[block].size_bytes < rounded_bytes) {
    const BlockIndex next = blocks_[block].next;
    if (next == kNoIndex || blocks_[next].state != State::kUnmapped) return kNoIndex;
    if (!map_front(next, std::min(rounded_bytes - blocks_[block].size_bytes, blocks_[next].size_bytes), driver))
      return kNoIndex;
    block = next;
  }
  erase_free(block);
  blocks_[block].state = State::kGone;
  return block;
}

bool TorchAllocator::map_front(BlockIndex index, std::uint64_t size_bytes, TorchDriver& driver) {
  const TorchBlock& block = blocks_[index];
  const std::uint64_t handle_bytes = segments_[block.segment].handle_bytes;
  const std::uint64_t mapped_bytes =
      std::min((size_bytes + handle_bytes - 1) / handle_bytes * handle_bytes, block.size_bytes);
  if (!driver.map(ByteRange::of(block.address, mapped_bytes), owner_of(block.list))) return false;
  ++segments_taken_;
  make_mapped(index, mapped_bytes);
  return true;
}

void TorchAllocator::make_mapped(BlockIndex index, std::uint64_t size_bytes) {
  lists_[blocks_[index].list].holes.erase({blocks_[index].address, index});
  if (size_bytes < blocks_[index].size_bytes) split_after(index, size_bytes, State::kUnmapped);
  segments_[blocks_[index].segment].mapped_bytes += size_bytes;
  add_reserved(size_bytes);
  blocks_[index].state = State::kGone;
  merge_neighbours(index, State::kFree);
  insert_free(index);
}

ByteRange TorchAllocator::whole_handles(const TorchBlock& block) const {
  const TorchSegment& segment = segments_[block.segment];
  const std::uint64_t begin = block.address - segment.address;
  const std::uint64_t first = (begin + segment.handle_bytes - 1) / segment.handle_bytes * segment.handle_bytes;
  const std::uint64_t last = (begin + block.size_bytes) / segment.handle_bytes * segment.handle_bytes;
  if (first >= last) return {block.address, block.address};
  return {segment.address + first, segment.address + last};
}

void TorchAllocator::unmap(BlockIndex index, ByteRange range, TorchDriver& driver) {
  driver.unmap(range, owner_of(blocks_[index].list));
  ++segments_returned_;
  erase_free(index);
  const std::uint64_t before_bytes = range.begin - blocks_[index].address;
  if (before_bytes != 0) {
    // The part before stays free under this number; what follows gets a new one.
    split_after(index, before_bytes, State::kUnmapped);
    insert_free(index);
    index = blocks_[index].next;
    lists_[blocks_[index].list].holes.erase({blocks_[index].address, index});
  }
  if (range.size() < blocks_[index].size_bytes) split_after(index, range.size(), State::kFree);
  blocks_[index].state = State::kGone;
  merge_neighbours(index, State::kUnmapped);
  blocks_[index].state = State::kUnmapped;
  lists_[blocks_[index].list].holes.insert({blocks_[index].address, index});
  reserved_bytes_ -= range.size();
  const SegmentIndex segment = blocks_[index].segment;
  segments_[segment].mapped_bytes -= range.size();
  if (blocks_[index].previous == kNoIndex && blocks_[index].next == kNoIndex) drop_segment(segment);
}

}  // namespace faultline
