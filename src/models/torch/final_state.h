// The allocator's state as a trace's end state: its segments and blocks in address order, an expandable segment once per mapped run.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "models/torch/allocator.h"
#include "trace/trace.h"

namespace faultline {

struct TorchFinalState {
  std::vector<FinalSegment> segments;
  std::vector<FinalBlock> blocks;
  std::vector<AllocationId> allocations;  // of each block, as the allocator knows it; 0 for a free one
};

// What the allocator does not know of an allocation.
struct TorchRequest {
  std::uint64_t size_bytes = 0;
  StackId stack;
};

FinalBlock::State state_of(const TorchBlock& block);

TorchFinalState final_state(const TorchAllocator& allocator, std::uint16_t device,
                            const std::function<HeapId(std::uint32_t arena)>& heap_of,
                            const std::function<TorchRequest(AllocationId)>& request_of);

}  // namespace faultline
