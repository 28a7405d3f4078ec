#include "view/perfetto.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>

#include "base/units.h"
#include "report/finding_text.h"
#include "rules/describe.h"
#include "view/perfetto_writer.h"

namespace faultline::view {
namespace {

constexpr std::int64_t kBegin = 1000;          // not 0, which some tools take for none
constexpr std::int64_t kEventApart = 1000;     // where nothing recorded the time: a microsecond an event
constexpr std::uint64_t kLatest = 1ull << 62;  // whatever a file says

// When each event happened, since `start_ns`. Events are in their order, and no two at once: a clock of microseconds gives many the same time, and a peak between two of them would be lost.
std::vector<std::int64_t> event_times(const Trace& trace, std::int64_t start_ns) {
  std::vector<std::int64_t> times;
  times.reserve(trace.events.size());
  std::int64_t last = kBegin - 1;
  for (const Event& event : trace.events) {
    std::int64_t at = last + kEventApart;
    if (trace.can(kTimes)) {
      const std::uint64_t since = event.time_ns > start_ns
                                      ? static_cast<std::uint64_t>(event.time_ns) - static_cast<std::uint64_t>(start_ns)
                                      : 0;
      at = kBegin + static_cast<std::int64_t>(std::min(since, kLatest));
    }
    times.push_back(last = std::max(at, last + 1));
  }
  return times;
}

std::int64_t start_of(std::span<const Viewed> inputs) {
  std::int64_t start = std::numeric_limits<std::int64_t>::max();
  for (const Viewed& viewed : inputs) {
    for (const Trace* trace : viewed.traces) {
      if (trace->can(kTimes) && !trace->events.empty()) start = std::min(start, trace->events.front().time_ns);
    }
  }
  return start;
}

class SceneTracks {
 public:
  SceneTracks(PerfettoWriter& writer, const Scene& scene, const std::vector<std::int64_t>& times,
              const std::string& name)
      : writer_(writer), scene_(scene), times_(times) {
    std::string about;
    if (scene.capacity_bytes != 0) about += format_bytes(scene.capacity_bytes) + ". ";
    if (!scene.has_times) about += "The recording has no times: an event stands for a microsecond.";
    root_ = writer.add_track(0, name, about);
    if (scene.columns.stretch > 1)
      highest_ = fmt::format("of every {} events the highest moment", format_count(scene.columns.stretch));
  }

  void add_findings(const std::vector<const Finding*>& findings, const std::vector<std::uint32_t>& events) {
    if (findings.empty()) return;
    const TrackId track = writer_.add_track(root_, "findings");
    for (std::size_t at = 0; at < findings.size(); ++at) add_finding(writer_, track, time(events[at]), *findings[at]);
  }

  static void add_finding(PerfettoWriter& writer, TrackId track, std::int64_t at, const Finding& finding) {
    const Location& place = place_to_look(finding);
    const std::string line = place.known() ? short_place(place) : std::string();
    std::string path = place.file;
    if (place.line != 0) path += fmt::format(":{}", place.line);
    std::string advice;
    for (const Try& attempt : finding.tries) {
      if (attempt.confirmed != false) advice += (advice.empty() ? "" : " ") + attempt.what;
    }
    writer.instant(track, at, finding.rule + (line.empty() ? "" : " at " + line), name_of(finding.severity),
                   {{"rule", finding.rule},
                    {"severity", std::string(name_of(finding.severity))},
                    {"confidence", std::string(name_of(finding.confidence))},
                    {"message", finding.message},
                    {"line", path},
                    {"function", place.function},
                    {"bytes", finding.bytes},
                    {"try", advice}});
  }

  void add_memory() {
    const Columns& columns = scene_.columns;
    const std::string axis = fmt::format("memory of track {}", root_);
    const TrackId allocated = writer_.add_counter(root_, "allocated", axis, highest_);
    const TrackId reserved = writer_.add_counter(root_, "reserved", axis, highest_);
    const std::size_t groups = scene_.groupings.front().groups.size();
    const std::vector<std::uint64_t>& first = columns.by_group.front();
    add_values(allocated, [&](std::size_t column) {
      std::uint64_t sum = 0;
      for (std::size_t group = 0; group < groups; ++group) sum += first[column * groups + group];
      return sum;
    });
    add_values(reserved, [&](std::size_t column) { return columns.reserved[column]; });
    for (std::size_t at = 0; at < scene_.groupings.size(); ++at) add_groups(scene_.groupings[at], columns.by_group[at]);
  }

  void add_calls() {
    if (scene_.lanes.empty()) return;
    static constexpr std::array<std::string_view, kLaneKinds> kNames = {"launch", "copy", "set", "wait"};
    const TrackId streams = writer_.add_track(
        root_, "streams",
        "launches, copies and waits when the program requested them; how long they took is not recorded");
    std::vector<TrackId> tracks;
    std::vector<std::uint64_t> kept(scene_.lanes.size());
    for (const KeptCall& call : scene_.calls) ++kept[call.lane];
    for (std::size_t lane = 0; lane < scene_.lanes.size(); ++lane) {
      std::uint64_t all = 0;
      for (const std::uint32_t count : scene_.lanes[lane].counts) all += count;
      tracks.push_back(writer_.add_track(
          streams, scene_.lanes[lane].name +
                       (kept[lane] < all ? fmt::format(" ({} of {} calls)", format_count(kept[lane]), format_count(all))
                                         : std::string())));
    }
    for (const KeptCall& call : scene_.calls) {
      std::vector<Annotation> about;
      if (call.bytes != 0) about.push_back({"bytes", call.bytes});
      if (call.failed) about.push_back({"failed", std::string("the driver refused it")});
      add_place(call.stack, about);
      const std::string& name = scene_.texts[call.text];
      const std::string_view kind = kNames[static_cast<std::size_t>(call.kind)];
      writer_.instant(tracks[call.lane], time(call.event), name.empty() ? kind : name, kind, about);
    }
  }

  // Slices of one track lie within one another; what different threads do at one time does not.
  void add_operations() {
    struct Open {
      TrackId track;
      std::vector<std::uint32_t> ends;
    };
    std::vector<Open> lanes;
    TrackId operations = 0;
    std::vector<Span> spans = scene_.spans;
    std::stable_sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) {
      return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
    });
    for (const Span& span : spans) {
      if (operations == 0)
        operations = writer_.add_track(root_, "operations", left_out(scene_.spans.size(), scene_.span_count));
      const auto lane = std::find_if(lanes.begin(), lanes.end(), [&](Open& one) {
        while (!one.ends.empty() && one.ends.back() <= span.begin) one.ends.pop_back();
        return one.ends.empty() || span.end <= one.ends.back();
      });
      Open& open =
          lane != lanes.end() ? *lane : lanes.emplace_back(Open{writer_.add_track(operations, "operations"), {}});
      open.ends.push_back(span.end);
      writer_.slice(open.track, time(span.begin), time(std::max(span.end, span.begin + 1) - 1), scene_.texts[span.text],
                    "operation");
    }
  }

  void add_marks() {
    TrackId marks = 0, steps = 0;
    std::int64_t step_begin = time(scene_.columns.first);
    std::uint64_t step = 0;
    for (const Mark& mark : scene_.marks) {
      if (mark.kind == "step") {
        if (steps == 0) steps = writer_.add_track(root_, "steps");
        writer_.slice(steps, step_begin, time(mark.event), fmt::format("step {}", ++step), "step");
        step_begin = time(mark.event) + 1;
      } else {
        if (marks == 0) marks = writer_.add_track(root_, "failures");
        writer_.instant(marks, time(mark.event), mark.text.empty() ? mark.kind : mark.text, mark.kind);
      }
    }
  }

 private:
  std::int64_t time(std::uint32_t event) const { return times_[std::min<std::size_t>(event, times_.size() - 1)]; }

  static std::string left_out(std::uint64_t kept, std::uint64_t all) {
    return kept < all ? fmt::format("the longest {} of {}", format_count(kept), format_count(all)) : std::string();
  }

  // The value at the highest moment of each column, where it is another than before.
  template <class Value>
  void add_values(TrackId counter, Value value) {
    for (std::size_t column = 0; column < scene_.columns.count(); ++column) {
      if (column == 0 || value(column) != value(column - 1))
        writer_.count(counter, time(scene_.columns.peak[column]), value(column));
    }
  }

  void add_groups(const Grouping& grouping, const std::vector<std::uint64_t>& bytes) {
    const std::size_t groups = grouping.groups.size();
    const TrackId parent = writer_.add_track(root_, "by " + grouping.by, highest_);
    const std::string axis = fmt::format("memory of track {}", parent);
    for (std::size_t group = 0; group < groups; ++group) {
      bool is_used = false;
      for (std::size_t at = group; at < bytes.size() && !is_used; at += groups) is_used = bytes[at] != 0;
      if (is_used)
        add_values(writer_.add_counter(parent, grouping.groups[group], axis),
                   [&](std::size_t column) { return bytes[column * groups + group]; });
    }
  }

  void add_place(std::uint32_t stack, std::vector<Annotation>& about) const {
    const Place& place = scene_.places[scene_.stacks[stack].line];
    if (place.file.empty()) return;
    about.push_back({"line", fmt::format("{}:{}", place.file, place.line)});
    about.push_back({"function", place.function});
  }

  PerfettoWriter& writer_;
  const Scene& scene_;
  const std::vector<std::int64_t>& times_;
  TrackId root_ = 0;
  std::string highest_;
};

std::string name_of_scene(const Viewed& viewed, const Scene& scene, bool is_one_of_several) {
  std::string name;
  if (is_one_of_several)
    name += (viewed.report.input_path.empty() ? "standard input" : viewed.report.input_path) + " · ";
  if (viewed.report.parts.size() > 1) name += scene.part + " · ";
  name += fmt::format("GPU {}", scene.device);
  return scene.device_name.empty() ? name : name + " (" + scene.device_name + ")";
}

void add_input(PerfettoWriter& writer, const Viewed& viewed, std::int64_t start_ns, bool is_one_of_several) {
  std::vector<const Finding*> unplaced;
  std::vector<std::int64_t> times;
  const Trace* timed = nullptr;
  for (std::size_t at = 0; at < viewed.scenes.size(); ++at) {
    const Scene& scene = viewed.scenes[at];
    const bool is_new_part = timed != viewed.traces[at];
    if (is_new_part) times = event_times(*(timed = viewed.traces[at]), start_ns);
    SceneTracks tracks(writer, scene, times, name_of_scene(viewed, scene, is_one_of_several));
    std::vector<const Finding*> findings;
    std::vector<std::uint32_t> events;
    for (std::size_t finding = 0; finding < viewed.jumps.size(); ++finding) {
      if (viewed.jumps[finding].scene != at) continue;
      findings.push_back(&viewed.report.findings[finding]);
      events.push_back(viewed.jumps[finding].event);
    }
    tracks.add_findings(findings, events);
    tracks.add_memory();
    tracks.add_marks();
    tracks.add_calls();
    if (is_new_part) tracks.add_operations();  // they are of the process, not of one GPU
  }
  for (std::size_t at = 0; at < viewed.jumps.size(); ++at) {
    if (viewed.jumps[at].scene >= viewed.scenes.size()) unplaced.push_back(&viewed.report.findings[at]);
  }
  if (unplaced.empty()) return;
  const TrackId track = writer.add_track(0, "findings without a moment", "they stand at the beginning");
  for (const Finding* finding : unplaced) SceneTracks::add_finding(writer, track, kBegin, *finding);
}

}  // namespace

std::string make_perfetto(std::span<const Viewed> inputs) {
  PerfettoWriter writer;
  const auto has_scenes = [](const Viewed& viewed) { return !viewed.scenes.empty(); };
  if (std::none_of(inputs.begin(), inputs.end(), has_scenes)) return {};
  const std::int64_t start_ns = start_of(inputs);
  for (const Viewed& viewed : inputs) add_input(writer, viewed, start_ns, inputs.size() > 1);
  return writer.take();
}

}  // namespace faultline::view
