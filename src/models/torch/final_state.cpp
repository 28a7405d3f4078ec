#include "models/torch/final_state.h"

#include <algorithm>

namespace faultline {
namespace {

using State = TorchBlock::State;

std::vector<SegmentIndex> by_address(const TorchAllocator& allocator) {
  std::vector<SegmentIndex> order;
  for (SegmentIndex segment = 0; segment < allocator.segment_count(); ++segment) {
    if (allocator.segment(segment).live) order.push_back(segment);
  }
  std::sort(order.begin(), order.end(), [&](SegmentIndex a, SegmentIndex b) {
    return allocator.segment(a).address < allocator.segment(b).address;
  });
  return order;
}

}  // namespace

FinalBlock::State state_of(const TorchBlock& block) {
  if (block.state == State::kAllocated) return FinalBlock::State::kActive;
  return block.state == State::kPending ? FinalBlock::State::kPendingFree : FinalBlock::State::kFree;
}

TorchFinalState final_state(const TorchAllocator& allocator, std::uint16_t device,
                            const std::function<HeapId(std::uint32_t)>& heap_of,
                            const std::function<TorchRequest(AllocationId)>& request_of) {
  TorchFinalState state;
  for (const SegmentIndex index : by_address(allocator)) {
    const TorchSegment& segment = allocator.segment(index);
    const SegmentOwner owner = allocator.owner_of(segment.list);
    bool open = false;
    for (BlockIndex at = segment.first; at != kNoIndex; at = allocator.block(at).next) {
      const TorchBlock& block = allocator.block(at);
      if (block.state == State::kUnmapped) {
        open = false;
        continue;
      }
      if (!open) {
        state.segments.push_back({block.address,
                                  0,
                                  device,
                                  heap_of(owner.arena),
                                  owner.stream,
                                  {},
                                  owner.is_small,
                                  segment.expandable(),
                                  static_cast<std::uint32_t>(state.blocks.size()),
                                  0});
        open = true;
      }
      const TorchRequest request = block.allocation.value != 0 ? request_of(block.allocation) : TorchRequest{};
      state.blocks.push_back({block.address, block.size_bytes, request.size_bytes, request.stack, state_of(block)});
      state.allocations.push_back(block.allocation);
      state.segments.back().size_bytes += block.size_bytes;
      ++state.segments.back().block_count;
    }
  }
  return state;
}

}  // namespace faultline
