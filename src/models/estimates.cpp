#include "models/estimates.h"

#include <algorithm>
#include <map>
#include <utility>

namespace faultline {
namespace {

constexpr std::uint64_t kRounding = 512;  // of the failed size, by PyTorch

}  // namespace

EstimatedSizes::EstimatedSizes(const Trace& trace, EstimateEnd end) : end_(end) {
  if (end == EstimateEnd::kLikely) return;
  for (const Event& event : trace.events) {
    if (event.kind == EventKind::kEstimate && event.allocation.value != 0)
      sizes_[event.allocation.value] = at_end(event);
  }
  std::map<std::pair<std::uint16_t, std::uint16_t>, std::size_t> failures;  // the last, by device and heap
  for (std::size_t at = 0; at < trace.events.size(); ++at) {
    const Event& event = trace.events[at];
    if (event.kind == EventKind::kAllocFailed) failures[{event.device, event.heap.value}] = at;
    if (event.kind != EventKind::kAlloc) continue;
    const auto failed = failures.find({event.device, event.heap.value});
    if (failed == failures.end()) continue;
    const auto rounded = [](std::uint64_t size_bytes) { return (size_bytes + kRounding - 1) / kRounding; };
    if (sizes_.contains(event.allocation.value) &&
        rounded(event.size_bytes) == rounded(trace.events[failed->second].size_bytes))
      served_after_.insert(failed->second);
    failures.erase(failed);
  }
}

std::uint64_t EstimatedSizes::of(const Event& alloc) const {
  const auto known = sizes_.find(alloc.allocation.value);
  return known == sizes_.end() ? alloc.size_bytes : known->second;
}

bool has_estimates(const Trace& trace, std::uint16_t device) {
  return std::any_of(trace.events.begin(), trace.events.end(),
                     [&](const Event& event) { return event.kind == EventKind::kEstimate && event.device == device; });
}

}  // namespace faultline
