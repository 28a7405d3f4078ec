#include "view/calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "base/safe_text.h"
#include "base/units.h"
#include "facts/kernel_name.h"
#include "trace/marks.h"

namespace faultline::view {
namespace {

constexpr std::size_t kMostMarks = 10'000;

std::optional<LaneKind> lane_kind(EventKind kind) {
  switch (kind) {
    case EventKind::kLaunch: return LaneKind::kLaunch;
    case EventKind::kCopy: return LaneKind::kCopy;
    case EventKind::kSet: return LaneKind::kSet;
    case EventKind::kRecord:
    case EventKind::kWait:
    case EventKind::kSync: return LaneKind::kWait;
    default: return std::nullopt;
  }
}

std::string_view side(MemorySide of) {
  switch (of) {
    case MemorySide::kHost: return "host";
    case MemorySide::kDevice: return "device";
    case MemorySide::kArray: return "array";
    case MemorySide::kUnified: break;
  }
  return "an address";
}

std::string words_of(const Trace& trace, const Event& event) {
  if (event.kind == EventKind::kLaunch) {
    const Launch& launch = trace.launches.at(LaunchId(event.extra));
    if (launch.graph != 0) return fmt::format("graph {}", launch.graph);
    return fmt::format("{} on {}×{}×{} blocks of {}×{}×{} threads", kernel_name(trace.strings.at(launch.kernel)),
                       launch.grid[0], launch.grid[1], launch.grid[2], launch.block[0], launch.block[1],
                       launch.block[2]);
  }
  if (event.kind == EventKind::kCopy) {
    const Copy& copy = trace.copies.at(CopyId(event.extra));
    return fmt::format("copy from {} to {}", side(copy.source_side), side(copy.destination_side));
  }
  switch (event.kind) {
    case EventKind::kSet: return "set";
    case EventKind::kRecord: return "event recorded";
    case EventKind::kWait: return "stream waits for an event";
    default: return "host waits";
  }
}

std::size_t column_of(const Columns& columns, std::uint32_t event) { return (event - columns.first) / columns.stretch; }

}  // namespace

void add_calls(const Facts& facts, std::uint16_t device, std::size_t most, SceneTables& tables, Scene& scene) {
  const Trace& trace = facts.trace;
  const auto counts = [&](std::uint32_t at) {
    const Event& event = trace.events[at];
    return at >= scene.columns.first && event.device == device && lane_kind(event.kind);
  };
  std::vector<std::uint64_t> by_stream(std::max<std::size_t>(trace.streams.size(), 1));
  for (std::uint32_t at = scene.columns.first; at < trace.events.size(); ++at) {
    if (!counts(at)) continue;
    ++scene.call_count;
    ++by_stream[std::min(trace.events[at].stream.index(), by_stream.size() - 1)];
  }
  if (scene.call_count == 0) return;
  // The busiest streams have a lane each, the others one together.
  std::vector<std::size_t> order;
  for (std::size_t at = 0; at < by_stream.size(); ++at) {
    if (by_stream[at] != 0) order.push_back(at);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return by_stream[a] > by_stream[b]; });
  const std::size_t told = order.size() <= kMostLanes ? order.size() : kMostLanes - 1;
  std::sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(told));
  std::vector<std::uint8_t> lane_of(by_stream.size(), static_cast<std::uint8_t>(told));
  for (std::size_t at = 0; at < told; ++at) {
    lane_of[order[at]] = static_cast<std::uint8_t>(at);
    const std::uint64_t handle = order[at] < trace.streams.size() ? trace.streams[order[at]].handle : 0;
    scene.lanes.push_back({handle == 0 ? "default stream" : fmt::format("stream {:#x}", handle), {}});
  }
  if (told < order.size()) scene.lanes.push_back({fmt::format("{} other streams", order.size() - told), {}});
  for (Lane& lane : scene.lanes) lane.counts.resize(scene.columns.count() * kLaneKinds);

  std::uint64_t ordinal = 0;
  for (std::uint32_t at = scene.columns.first; at < trace.events.size(); ++at) {
    if (!counts(at)) continue;
    const Event& event = trace.events[at];
    const LaneKind kind = *lane_kind(event.kind);
    const std::uint8_t lane = lane_of[std::min(event.stream.index(), lane_of.size() - 1)];
    ++scene.lanes[lane].counts[column_of(scene.columns, at) * kLaneKinds + static_cast<std::size_t>(kind)];
    // where there are too many, every so many
    const std::uint64_t number = ordinal++;
    const bool is_chosen =
        scene.call_count <= most || number * most / scene.call_count != (number + 1) * most / scene.call_count;
    if (!is_chosen && !(event.has(kFailed) && scene.calls.size() < 2 * most)) continue;
    scene.calls.push_back({at, lane, kind, event.has(kFailed), event.size_bytes, tables.text(words_of(trace, event)),
                           tables.stack(event.stack)});
  }
}

// A dry run's marks: a phase goes on until the next, all others are moments that are told elsewhere.
bool is_moment(std::string_view name) { return name == kLookMark || name.starts_with(kTurnMark); }

// OpBegin and OpEnd of one thread nest. What was left open ends with the recording.
void add_spans(const Facts& facts, std::size_t most, SceneTables& tables, Scene& scene) {
  const Trace& trace = facts.trace;
  std::map<std::uint16_t, std::vector<Span>> open;
  std::vector<Span> spans;
  Span phase;  // that is open
  const auto last = static_cast<std::uint32_t>(trace.events.size());
  for (std::uint32_t at = scene.columns.first; at < last; ++at) {
    const Event& event = trace.events[at];
    const bool begins = event.kind == EventKind::kOpBegin;
    const std::string_view name = begins ? trace.strings.at(StringId(event.extra)) : std::string_view();
    if (begins && (name.starts_with(kPhaseMark) || is_moment(name))) {
      if (!is_moment(name)) {
        if (phase.end != 0) spans.push_back({phase.begin, at, 0, phase.text});
        phase = {at, last, 0, event.extra};
      }
      if (at + 1 < last && trace.events[at + 1].kind == EventKind::kOpEnd) ++at;  // the mark's own
    } else if (begins) {
      std::vector<Span>& inside = open[event.thread.value];
      inside.push_back({at, last, static_cast<std::uint32_t>(inside.size()) + (phase.end != 0), event.extra});
    } else if (event.kind == EventKind::kOpEnd) {
      std::vector<Span>& inside = open[event.thread.value];
      if (inside.empty() || (!event.has(kFailed) && inside.back().text != event.extra)) continue;
      inside.back().end = at + 1;
      spans.push_back(inside.back());
      inside.pop_back();
    }
  }
  if (phase.end != 0) spans.push_back(phase);
  for (const auto& [thread, inside] : open) spans.insert(spans.end(), inside.begin(), inside.end());
  scene.span_count = spans.size();
  const auto longer = [](const Span& a, const Span& b) {
    return a.end - a.begin != b.end - b.begin ? a.end - a.begin > b.end - b.begin : a.begin < b.begin;
  };
  if (spans.size() > most) {
    std::nth_element(spans.begin(), spans.begin() + static_cast<std::ptrdiff_t>(most), spans.end(), longer);
    spans.resize(most);
  }
  std::stable_sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) { return a.begin < b.begin; });
  for (Span& span : spans) span.text = tables.text(std::string(trace.strings.at(StringId(span.text))));
  scene.spans = std::move(spans);
}

void add_marks(const Facts& facts, std::size_t device_slot, Scene& scene) {
  const Trace& trace = facts.trace;
  const DeviceUsage& usage = facts.usage[device_slot];
  const auto add = [&](std::uint32_t at, std::string kind, const std::string& text) {
    if (at >= scene.columns.first && ++scene.mark_count <= kMostMarks)
      scene.marks.push_back({at, std::move(kind), shown(text, 240)});
  };
  for (const UsageMoment& moment : usage.failures)
    add(moment.event, "failure", "request of " + format_bytes(trace.events[moment.event].size_bytes) + " failed");
  for (const std::uint32_t at : facts.faults) {
    if (trace.events[at].device == usage.device)
      add(at, "fault", std::string(trace.strings.at(trace.faults.at(FaultId(trace.events[at].extra)).what)));
  }
  for (const std::uint32_t at : facts.violations) {
    if (trace.events[at].device == usage.device) add(at, "violation", "a bad access was caught");
  }
  for (std::size_t step = 0; step < facts.steps.ends.size(); ++step) add(facts.steps.ends[step], "step", {});
}

}  // namespace faultline::view
