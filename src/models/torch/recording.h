// One device's torch events in a trace: which heaps matter, which arena each belongs to, and the state the recording began with.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "models/torch/allocator.h"
#include "models/torch/settings.h"
#include "trace/trace.h"

namespace faultline {

enum class HeapRole : std::uint8_t { kElsewhere, kTorch, kDriver };

struct TorchRecording {
  const Trace& trace;
  std::uint16_t device = 0;
  std::vector<HeapRole> roles;               // by heap
  std::vector<std::uint32_t> arenas;         // by heap; 0 for the default pool
  std::vector<HeapId> heap_of_arena;         // [0] is the default pool's heap
  HeapId driver_heap;                        // the one that segments come from
  std::uint64_t capacity_bytes = 0;          // 0: unknown
  std::optional<std::uint64_t> limit_bytes;  // the program's own, where the trace knows it
  std::uint32_t largest_allocation = 0;      // no event names a larger id (bounded by the number of events)

  HeapRole role(const Event& event) const {
    return event.heap.index() < roles.size() ? roles[event.heap.index()] : HeapRole::kElsewhere;
  }
  std::uint32_t arena(const Event& event) const { return arenas[event.heap.index()]; }
  bool valid(AllocationId id) const { return id.value != 0 && id.value <= largest_allocation; }
};

// Nothing when the trace has no torch heap on that device.
std::optional<TorchRecording> torch_recording(const Trace& trace, std::uint16_t device);

// How many addresses PyTorch reserves for an expandable segment on this device.
std::uint64_t reservation_bytes(std::uint64_t capacity_bytes);
inline std::uint64_t reservation_bytes(const TorchRecording& recording) {
  return reservation_bytes(recording.capacity_bytes);
}

// Rebuilds the segments and blocks that existed before the recording began. block_of gets the block of each such allocation.
void build_start_state(const TorchRecording& recording, TorchAllocator& allocator, std::vector<BlockIndex>& block_of);

}  // namespace faultline
