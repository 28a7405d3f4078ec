// One device's BFC pools in a trace: which heaps they are, what the trace states about each, and the state it began with. docs/bfc.md has the names.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/byte_interval.h"
#include "models/bfc/pool.h"
#include "trace/trace.h"

namespace faultline {

// What the trace says of a pool in its properties.
struct StatedPool {
  std::optional<ByteInterval> limit;
  std::optional<bool> growth, garbage_collection;
  std::optional<std::uint64_t> next_region_bytes;  // at the trace's beginning
};

inline constexpr std::uint32_t kNoPool = ~std::uint32_t{0};

struct BfcRecording {
  const Trace& trace;
  std::uint16_t device = 0;
  Framework framework = Framework::kTensorFlow;
  struct Pool {
    HeapId heap, driver_heap;
    StatedPool stated;
  };
  std::vector<Pool> pools;
  std::vector<std::uint32_t> pool_of_heap;  // by heap; kNoPool: none of these
  std::vector<bool> is_driver;              // by heap: regions come from it
  std::uint32_t largest_allocation = 0;     // no event names a larger id (bounded by the number of events)

  std::uint32_t pool_of(const Event& event) const {
    return event.heap.index() < pool_of_heap.size() ? pool_of_heap[event.heap.index()] : kNoPool;
  }
  bool from_driver(const Event& event) const {
    return event.heap.index() < is_driver.size() && is_driver[event.heap.index()];
  }
  // The pool that takes regions from this heap; of several sharing it the first.
  std::uint32_t pool_above(HeapId driver_heap) const;
  bool valid(AllocationId id) const { return id.value != 0 && id.value <= largest_allocation; }
  // The pool that a limit in a what-if means: the one that most is asked of.
  std::uint32_t main_pool() const;
};

// Where an allocation lies.
struct BfcPlace {
  std::uint32_t pool = kNoPool;
  BfcChunkIndex chunk = kNoChunk;
  bool known() const { return chunk != kNoChunk; }
};

// Nothing when the trace has no BFC heap on that device.
std::optional<BfcRecording> bfc_recording(const Trace& trace, std::uint16_t device);

// "bfc.GPU_0_bfc.limit": the property that states something about a pool.
std::string bfc_property(std::string_view pool, std::string_view what);

// Puts the regions and chunks that were there before the recording began into the pools. place_of gets the place of each such allocation.
void build_start_state(const BfcRecording& recording, std::vector<BfcPool>& pools, std::vector<BfcPlace>& place_of);

}  // namespace faultline
