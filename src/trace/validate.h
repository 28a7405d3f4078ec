// The trace's invariants, tested. trace/trace.h states them; this is where they are checked.
//
// Sources call check_trace in their tests, the fuzz targets call it on whatever a reader let through, and the text reader calls it before it
// hands a trace out (the file reader repairs and counts instead, so that a cut file still tells what it can). After check_trace says ok,
// every id in every event, table and final segment may be used as an index without looking.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "trace/trace.h"

namespace faultline {

// What a kind's fields name: event.h's table, for those who must follow an id without knowing the kind's story.
constexpr bool makes_allocation(EventKind kind) { return kind == EventKind::kAlloc || kind == EventKind::kHostPin; }
// Unless flagged kFailed: then it names an allocation, and leaves it as it is.
constexpr bool ends_allocation(EventKind kind) { return kind == EventKind::kFree || kind == EventKind::kHostUnpin; }
constexpr bool extra_is_tensor(EventKind kind) { return kind == EventKind::kAlloc || kind == EventKind::kTensorNote; }
constexpr bool extra_is_string(EventKind kind) {
  return kind == EventKind::kOpBegin || kind == EventKind::kOpEnd || kind == EventKind::kStepMark ||
         kind == EventKind::kEstimate;
}
constexpr bool extra_is_call(EventKind kind) {
  return kind == EventKind::kLaunch || kind == EventKind::kCopy || kind == EventKind::kFault ||
         kind == EventKind::kViolation;
}
constexpr bool happens_in_heap(EventKind kind) {
  return makes_allocation(kind) || ends_allocation(kind) || kind == EventKind::kAllocFailed ||
         kind == EventKind::kMap || kind == EventKind::kUnmap;
}
// Its device must be one of Trace::devices, where the trace names any. Pinned host memory and marks belong to no device;
// launches, copies, faults and violations have a device, but are worth keeping where the source did not list it.
constexpr bool happens_on_device(EventKind kind) {
  return kind == EventKind::kAlloc || kind == EventKind::kFree || kind == EventKind::kAllocFailed ||
         kind == EventKind::kMap || kind == EventKind::kUnmap;
}

struct TraceProblem {
  std::optional<std::size_t> event;  // index into Trace::events, where one event is to blame
  std::string what;                  // "names stack 7, the trace has 3"
};

// The first broken invariant; nullopt when all hold.
std::optional<TraceProblem> find_problem(const Trace& trace);

// The same as a Status: "event 12 (Free) names stack 7, the trace has 3".
Status check_trace(const Trace& trace);

// Heaps from which following `below` never reaches a lowest heap. Every `below` must be a valid id.
std::vector<HeapId> heaps_in_circles(const std::vector<Heap>& heaps);

}  // namespace faultline
