// Traces of requests for tests and benchmarks: one driver heap, one of a framework above it, private pools on demand.
#pragma once

#include <cstdint>

#include "trace/trace.h"

namespace faultline {

class RequestTrace {
 public:
  explicit RequestTrace(HeapKind kind = HeapKind::kTorchCaching) {
    trace_.heaps = {{HeapKind::kDriver, 0, HeapId(0), 0, 0, "driver"},
                    {kind, 0, HeapId(0), 0, 0, kind == HeapKind::kBfc ? "GPU_0_bfc" : "torch"}};
    trace_.streams = {{0, 0}};
    trace_.devices = {{0, "", 0, 0}};
  }

  StreamId stream(std::uint64_t handle) {
    trace_.streams.push_back({0, handle});
    return StreamId(static_cast<std::uint32_t>(trace_.streams.size() - 1));
  }
  HeapId private_pool() {
    Heap pool = trace_.heaps[1];
    pool.pool_minor = trace_.heaps.size();
    pool.name += " private pool";
    trace_.heaps.push_back(pool);
    return HeapId(static_cast<std::uint16_t>(trace_.heaps.size() - 1));
  }
  AllocationId alloc(std::uint64_t size_bytes, StreamId stream = {}, HeapId heap = HeapId(1)) {
    Event event = of(EventKind::kAlloc, heap);
    event.size_bytes = size_bytes;
    event.stream = stream;
    event.allocation = AllocationId(++trace_.allocation_count);
    trace_.events.push_back(event);
    return event.allocation;
  }
  void request_free(AllocationId id) { free_half(id, FreePhase::kRequested); }
  void complete_free(AllocationId id) { free_half(id, FreePhase::kCompleted); }
  void free(AllocationId id) {
    request_free(id);
    complete_free(id);
  }
  void failed(std::uint64_t rounded_bytes, std::uint64_t device_free_bytes) {
    Event event = of(EventKind::kAllocFailed, HeapId(1));
    event.size_bytes = rounded_bytes;
    event.address = device_free_bytes;
    event.set(kHasDeviceFree);
    trace_.events.push_back(event);
  }
  Trace& trace() { return trace_; }
  const Trace& trace() const { return trace_; }

 private:
  static Event of(EventKind kind, HeapId heap) {
    Event event;
    event.kind = kind;
    event.heap = heap;
    return event;
  }
  void free_half(AllocationId id, FreePhase phase) {
    Event event = of(EventKind::kFree, HeapId(1));
    event.allocation = id;
    event.set_phase(phase);
    trace_.events.push_back(event);
  }

  Trace trace_;
};

}  // namespace faultline
