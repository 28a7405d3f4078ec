#include "facts/heap_uses.h"

#include <algorithm>

#include "facts/libraries.h"

namespace faultline {
namespace {

bool is_framework(HeapKind kind) {
  return kind == HeapKind::kTorchCaching || kind == HeapKind::kBfc || kind == HeapKind::kOther;
}

constexpr std::ptrdiff_t kRequestsLookedAt = 64;
constexpr std::uint64_t kLeastShare = 4;  // who then got at least a quarter of it has found a way

}  // namespace

HeapUses::HeapUses(const Trace& trace) {
  for (const Heap& heap : trace.heaps) {
    if (!is_framework(heap.kind)) continue;
    if (framework_.size() <= heap.device) framework_.resize(heap.device + std::size_t{1});
    framework_[heap.device] = true;
  }
  for (std::size_t index = 0; index < trace.heaps.size(); ++index) {
    const Heap& heap = trace.heaps[index];
    HeapUse use = HeapUse::kProgram;
    switch (heap.kind) {
      case HeapKind::kDriver:
        if (has_framework(heap.device)) use = heap.below.index() == index ? HeapUse::kSegments : HeapUse::kOutside;
        break;
      case HeapKind::kStreamOrderedPool:
        if (has_framework(heap.device)) use = HeapUse::kOutside;
        break;
      case HeapKind::kManaged: use = HeapUse::kOutside; break;
      case HeapKind::kImported:
      case HeapKind::kTorchPinnedHost:
      case HeapKind::kPinnedHost:
      case HeapKind::kRegisteredHost: use = HeapUse::kElsewhere; break;
      case HeapKind::kTorchCaching:
      case HeapKind::kBfc:
      case HeapKind::kOther: break;
    }
    uses_.push_back(use);
  }
}

HandledFailures::HandledFailures(const Trace& trace) {
  const auto is_failure = [](const Event& event) { return event.kind == EventKind::kAllocFailed; };
  if (std::none_of(trace.events.begin(), trace.events.end(), is_failure)) return;
  const auto from_driver = [&](const Event& event) {
    const HeapKind kind = trace.heaps[event.heap.index()].kind;
    return kind == HeapKind::kDriver || kind == HeapKind::kStreamOrderedPool;
  };
  std::vector<std::uint32_t> failed;
  std::vector<std::uint32_t> served;
  for (std::size_t index = 0; index < trace.events.size(); ++index) {
    const Event& event = trace.events[index];
    if (event.kind == EventKind::kAllocFailed && from_driver(event))
      failed.push_back(static_cast<std::uint32_t>(index));
    if ((event.kind == EventKind::kAlloc || event.kind == EventKind::kMap) && from_driver(event))
      served.push_back(static_cast<std::uint32_t>(index));
  }
  if (failed.empty()) return;
  const StackLibraries libraries(trace);
  for (const std::uint32_t index : failed) {
    const Event& refused = trace.events[index];
    const std::string asker = libraries.of(refused.stack);
    const auto is_way_out = [&](std::uint32_t at) {
      const Event& event = trace.events[at];
      return event.device == refused.device && event.thread == refused.thread &&
             event.size_bytes >= refused.size_bytes / kLeastShare &&
             (libraries.file(event.stack) == libraries.file(refused.stack) || libraries.of(event.stack) == asker);
    };
    const auto first = std::upper_bound(served.begin(), served.end(), index);
    const auto last = first + std::min<std::ptrdiff_t>(served.end() - first, kRequestsLookedAt);
    if (std::any_of(first, last, is_way_out)) handled_.push_back(index);
  }
}

bool HandledFailures::contains(std::uint32_t event) const {
  return std::binary_search(handled_.begin(), handled_.end(), event);
}

}  // namespace faultline
