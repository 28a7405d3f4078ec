#include "sources/run_folder/place_faults.h"

#include <algorithm>
#include <optional>

#include "base/hash.h"
#include "sources/trace_import.h"

namespace faultline {
namespace {

using Words = HashMap<std::uint32_t, std::uint64_t>;  // by their place in the parameters

// How well a launch agrees with a fault, whose parameters are `words`; 0: another kernel.
int agreement(const Launch& launch, const Fault& fault, const Words& words) {
  if (launch.kernel != fault.kernel || launch.kernel.value == 0) return 0;
  int score = 1;
  if (fault.grid != Extent3{} && fault.block != Extent3{}) {
    if (launch.grid != fault.grid || launch.block != fault.block) return 1;
    score = 2;
  }
  if (fault.parameters.empty() || launch.arguments.empty()) return score;
  for (const LaunchArgument& argument : launch.arguments) {
    const auto at = words.find(argument.offset_bytes);
    if (at != words.end() && at->second != argument.address) return score;
  }
  return score + 1;
}

std::optional<std::size_t> launch_of(const Trace& trace, const Fault& fault, std::size_t end) {
  Words words;
  for (const LaunchArgument& word : fault.parameters) words.try_emplace(word.offset_bytes, word.address);
  constexpr std::int8_t kUnknown = -1;
  // the same launch may stand in the trace a million times
  std::vector<std::int8_t> scores(trace.launches.size(), kUnknown);
  std::optional<std::size_t> best;
  int best_score = 0;
  for (std::size_t index = end; index-- > 0;) {
    const Event& event = trace.events[index];
    if (event.kind != EventKind::kLaunch || event.has(kFailed) || event.extra >= trace.launches.size()) continue;
    std::int8_t& score = scores[event.extra];
    if (score == kUnknown)
      score = static_cast<std::int8_t>(agreement(trace.launches.at(LaunchId(event.extra)), fault, words));
    if (score > best_score) best = index, best_score = score;
  }
  return best;
}

// A kernel that was put into a graph ran when a graph was launched: behind the last such launch.
std::size_t replay_of(const Trace& trace, std::size_t captured, std::size_t end) {
  for (std::size_t index = end; index-- > captured;) {
    const Event& event = trace.events[index];
    if (event.kind == EventKind::kLaunch && !event.has(kFailed) && event.extra < trace.launches.size() &&
        trace.launches.at(LaunchId(event.extra)).graph != 0)
      return index + 1;
  }
  return captured + 1;
}

// The program cannot launch anything more once the driver has told it.
std::size_t first_report(const Trace& trace) {
  const auto told = [&](const Event& event) {
    return event.kind == EventKind::kFault && event.extra < trace.faults.size() &&
           trace.faults.at(FaultId(event.extra)).reported_by.value != 0;
  };
  return static_cast<std::size_t>(std::find_if(trace.events.begin(), trace.events.end(), told) - trace.events.begin());
}

}  // namespace

void place_faults(Trace& trace, const Trace& core) {
  TraceImport import(core, trace);
  const std::size_t end = first_report(trace);
  struct Placed {
    std::size_t after;
    Event event;
  };
  std::vector<Placed> placed;
  for (const Event& seen : core.events) {
    if (seen.kind != EventKind::kFault) continue;
    Event event = import.renumbered(seen);
    event.allocation = {};
    std::size_t after = trace.events.size();
    if (event.extra < trace.faults.size()) {
      if (const auto launch = launch_of(trace, trace.faults.at(FaultId(event.extra)), end)) {
        const Event& by = trace.events[*launch];
        event.stack = by.stack;
        event.stream = by.stream;
        event.time_ns = by.time_ns;
        event.device = by.device;
        event.thread = by.thread;
        after = by.has(kCaptured) ? replay_of(trace, *launch, end) : *launch + 1;
      }
    }
    if (after == trace.events.size() && !trace.events.empty()) {
      event.time_ns = trace.events.back().time_ns;
      if (std::none_of(trace.devices.begin(), trace.devices.end(),
                       [&](const Device& device) { return device.index == event.device; }))
        event.device = trace.events.back().device;
    }
    placed.push_back({after, event});
  }
  for (const auto& [what, times] : core.lost) trace.count(what, times);
  if (placed.empty()) return;
  std::stable_sort(placed.begin(), placed.end(), [](const Placed& a, const Placed& b) { return a.after < b.after; });
  std::vector<Event> events;
  events.reserve(trace.events.size() + placed.size());
  std::size_t next = 0;
  for (std::size_t index = 0; index <= trace.events.size(); ++index) {
    for (; next < placed.size() && placed[next].after == index; ++next) events.push_back(placed[next].event);
    if (index < trace.events.size()) events.push_back(trace.events[index]);
  }
  trace.events = std::move(events);
  for (const auto& [name, value] : core.properties) trace.properties.try_emplace(name, value);
  trace.source_events += core.source_events;
}

}  // namespace faultline
