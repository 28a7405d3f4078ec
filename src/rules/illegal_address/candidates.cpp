#include "rules/illegal_address/candidates.h"

#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "trace/recorded_part.h"

namespace faultline {
namespace {

constexpr std::size_t kFarthestBack = 200'000;

// The bytes are with the host when the call returns, so all that stood before it in its stream is done. A copy to the device may return earlier.
bool waits_for_stream(const Trace& trace, const Event& event) {
  if (event.kind != EventKind::kCopy || event.has(kCaptured) || event.extra >= trace.copies.size()) return false;
  const Copy& copy = trace.copies.at(CopyId(event.extra));
  return !copy.asynchronous && copy.destination_side == MemorySide::kHost;
}

// The launch that returned the error, where one did: it stands right before the report, flagged as failed.
std::optional<std::uint32_t> failed_launch(const Trace& trace, std::uint32_t event) {
  const Event& report = trace.events[event];
  for (std::uint32_t back = 1; back <= 8 && back <= event; ++back) {
    const Event& at = trace.events[event - back];
    if (at.thread != report.thread) continue;
    const bool is_it = at.kind == EventKind::kLaunch && at.has(kFailed) && at.extra < trace.launches.size();
    return is_it ? std::optional(event - back) : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

Candidates launched_since_sync(const Trace& trace, std::uint32_t event, bool waits_for_launches) {
  Candidates found;
  const std::optional<std::uint32_t> refused = failed_launch(trace, event);
  const auto only = [&](std::uint32_t launch) {
    Candidates one;
    one.kernels.push_back({LaunchId(trace.events[launch].extra), launch, 1});
    one.events.push_back(launch);
    one.returned_by_launch = true;
    return one;
  };
  if (refused && waits_for_launches) return only(*refused);

  if (!recorded_part(trace).all_calls) {  // the last launches in the trace are not the last that there were
    found.complete = false;
    return found;
  }
  const std::uint16_t device = trace.events[event].device;
  std::set<StreamId> waited_for;
  std::set<std::uint32_t> recorded;  // driver events that are known to be over: what stands before their Record is done
  std::map<std::tuple<StringId, std::uint32_t, StackId>, std::size_t> known;
  const std::uint32_t first = event > kFarthestBack ? static_cast<std::uint32_t>(event - kFarthestBack) : 0;
  bool reached_wait = false;
  for (std::uint32_t index = event; index-- > first && !reached_wait;) {
    const Event& at = trace.events[index];
    if (at.device != device || at.has(kFailed)) continue;
    if (at.kind == EventKind::kSync) {
      const auto target = static_cast<SyncTarget>(at.extra);
      if (target == SyncTarget::kDevice) reached_wait = true;
      if (target == SyncTarget::kStream) waited_for.insert(at.stream);
      if (target == SyncTarget::kEvent) recorded.insert(static_cast<std::uint32_t>(at.size_bytes));
    } else if (waits_for_stream(trace, at)) {
      waited_for.insert(at.stream);
    } else if (at.kind == EventKind::kWait && waited_for.contains(at.stream)) {
      recorded.insert(at.extra);  // its stream went on after the event, and has been waited for
    } else if (at.kind == EventKind::kRecord && recorded.erase(at.extra) != 0) {
      waited_for.insert(at.stream);
    } else if (at.kind == EventKind::kLaunch && !at.has(kCaptured) && !waited_for.contains(at.stream) &&
               at.extra < trace.launches.size()) {
      found.events.push_back(index);
      const Launch& launch = trace.launches.at(LaunchId(at.extra));
      const auto [place, fresh] = known.try_emplace({launch.kernel, launch.graph, at.stack}, found.kernels.size());
      if (!fresh) {
        ++found.kernels[place->second].times;
      } else if (found.kernels.size() < Candidates::kMost) {
        found.kernels.push_back({LaunchId(at.extra), index, 1});
      } else {
        known.erase(place);
        found.complete = false;
      }
    }
  }
  if (first != 0 && !reached_wait) found.complete = false;
  if (found.events.empty() && refused) return only(*refused);
  return found;
}

}  // namespace faultline
