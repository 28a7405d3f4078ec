// Which of the driver's events are PyTorch's own segments, seen a second time.
//
// PyTorch's history and the capture record the same calls: a segment is one cudaMalloc in both, an expandable segment's growth one entry here and one
// mapping for each handle there. Both clocks are Unix time, but PyTorch's is rebuilt from a counter, so the difference is taken from the pairs
// themselves. Addresses return, and either side may lack the beginning or the end; of one address and size, what the one side has is a window of what
// the other has, and the window is the one whose times agree.
#pragma once

#include <cstdint>
#include <vector>

#include "trace/trace.h"

namespace faultline {

inline constexpr std::uint32_t kNoEvent = 0xffffffff;

struct SameMemory {
  std::vector<std::uint32_t> torch_of;  // by the capture's events: PyTorch's event for the same call, or kNoEvent
  std::vector<bool> in_order;           // by the capture's events: the pair can be used to put both sides in order
  // by the capture's events: PyTorch's own memory; true also where its history lacks the call
  std::vector<bool> is_torch;
  std::int64_t offset_ns = 0;  // PyTorch's clock minus the capture's
  bool has_times = false;      // both sides have times: events between two pairs can be put in order
  std::uint64_t pairs = 0;
};

SameMemory find_same_memory(const Trace& torch, const Trace& capture);

}  // namespace faultline
