#include "rules/illegal_address/candidates.h"

#include <algorithm>
#include <set>

#include "trace/recorded_part.h"

namespace faultline {
namespace {

constexpr std::size_t kFarthestBack = 200'000;

}  // namespace

Candidates launched_since_sync(const Trace& trace, std::uint32_t event) {
  Candidates found;
  if (!recorded_part(trace).all_calls) {  // the last launches in the trace are not the last that there were
    found.complete = false;
    return found;
  }
  const std::uint16_t device = trace.events[event].device;
  std::set<StreamId> waited_for;
  std::set<std::uint32_t> recorded;  // driver events that the host waited for: what stands before their Record is done
  const std::uint32_t first = event > kFarthestBack ? static_cast<std::uint32_t>(event - kFarthestBack) : 0;
  for (std::uint32_t index = event; index-- > first;) {
    const Event& at = trace.events[index];
    if (at.device != device || at.has(kFailed)) continue;
    if (at.kind == EventKind::kSync) {
      const auto target = static_cast<SyncTarget>(at.extra);
      if (target == SyncTarget::kDevice) return found;
      if (target == SyncTarget::kStream) waited_for.insert(at.stream);
      if (target == SyncTarget::kEvent) recorded.insert(static_cast<std::uint32_t>(at.size_bytes));
    } else if (at.kind == EventKind::kRecord && recorded.erase(at.extra) != 0) {
      waited_for.insert(at.stream);
    } else if (at.kind == EventKind::kLaunch && !at.has(kCaptured) && !waited_for.contains(at.stream)) {
      ++found.launches;
      const auto same = [&](const Candidate& other) {
        const Launch& a = trace.launches.at(other.launch);
        const Launch& b = trace.launches.at(LaunchId(at.extra));
        return a.kernel == b.kernel && a.graph == b.graph && trace.events[other.event].stack == at.stack;
      };
      const auto known = std::find_if(found.kernels.begin(), found.kernels.end(), same);
      if (known != found.kernels.end()) {
        ++known->times;
      } else if (found.kernels.size() < Candidates::kMost) {
        found.kernels.push_back({LaunchId(at.extra), index, 1});
      } else {
        found.complete = false;
      }
    }
  }
  if (first != 0) found.complete = false;
  return found;
}

}  // namespace faultline
