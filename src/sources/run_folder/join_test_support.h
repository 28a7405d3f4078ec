// A capture made from PyTorch's history: what the tests of joint traces have in common.
#pragma once

#include <cstdint>
#include <map>

#include "trace/trace.h"

namespace faultline {

// What a capture would have seen of the same process: every segment as the driver's allocation, on a clock of its own, and other libraries' memory
// between them.
class CaptureOf {
 public:
  explicit CaptureOf(const Trace& torch, std::int64_t offset_ns = -3'000) : torch_(torch), offset_ns_(offset_ns) {
    trace_.source_kind = "capture";
    trace_.capabilities = kAddresses | kStacks | kStreams | kCompleteFromStart | kEvents | kTimes;
    trace_.heaps = {{HeapKind::kDriver, 0, HeapId(0), 0, 0, "driver"},
                    {HeapKind::kStreamOrderedPool, 0, HeapId(0), 0, 0, "stream-ordered pool"}};
    trace_.streams = {{}};
    trace_.devices = {{0, "NVIDIA H200", std::uint64_t{140} << 30, 0}};
    const Frame frame{trace_.strings.intern("+0x10"), trace_.strings.intern("/x/libcublas.so.13"), 0};
    cublas_ = trace_.stacks.push({}, trace_.stacks.intern_frame(frame));
    const Frame own{trace_.strings.intern("+0x20"), trace_.strings.intern("/x/libc10_cuda.so"), 0};
    c10_ = trace_.stacks.push({}, trace_.stacks.intern_frame(own));
  }

  Trace take(std::size_t first = 0, std::size_t every = 50) {
    outside(0x10000000, 8 << 20);
    for (std::size_t index = 0; index < torch_.events.size(); ++index) {
      const Event& event = torch_.events[index];
      now_ns_ = event.time_ns + offset_ns_;
      if (index % every == every - 1) outside(0x20000000 + (index << 12), 4096);
      if (index < first || torch_.heaps[event.heap.index()].kind != HeapKind::kDriver) continue;
      add_segment_event(event);
    }
    return std::move(trace_);
  }

 private:
  void add_segment_event(const Event& event) {
    Event seen;
    seen.kind = event.kind;
    seen.address = event.address;
    seen.size_bytes = event.size_bytes;
    seen.set(kAddressKnown);
    seen.stack = c10_;
    if (event.kind == EventKind::kAlloc) {
      seen.allocation = ids_[event.address] = AllocationId(++trace_.allocation_count);
    } else if (event.kind == EventKind::kFree) {
      seen.allocation = ids_[event.address];
    } else if (event.kind == EventKind::kMap || event.kind == EventKind::kUnmap) {  // handle by handle
      for (std::uint64_t at = 0; at < event.size_bytes; at += 2 << 20) {
        seen.address = event.address + at;
        seen.size_bytes = 2 << 20;
        push(seen);
      }
      return;
    } else {
      return;
    }
    push(seen);
  }
  void outside(std::uint64_t address, std::uint64_t size_bytes) {
    Event event;
    event.kind = EventKind::kAlloc;
    event.address = address;
    event.size_bytes = size_bytes;
    event.set(kAddressKnown);
    event.stack = cublas_;
    event.allocation = AllocationId(++trace_.allocation_count);
    push(event);
  }
  void push(Event event) {
    event.time_ns = now_ns_;
    trace_.events.push_back(event);
  }

  const Trace& torch_;
  std::int64_t offset_ns_;
  std::int64_t now_ns_ = 0;
  Trace trace_;
  StackId cublas_, c10_;
  std::map<std::uint64_t, AllocationId> ids_;
};

}  // namespace faultline
