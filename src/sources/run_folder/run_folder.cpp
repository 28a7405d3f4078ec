#include "sources/run_folder/run_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <sstream>
#include <utility>

#include "base/json_input.h"
#include "base/plain_file.h"
#include "sources/run_folder/framework_files.h"
#include "sources/run_folder/join.h"
#include "sources/run_folder/layout.h"
#include "sources/run_folder/place_faults.h"
#include "sources/run_folder/second_run.h"
#include "trace/recorded_part.h"

namespace faultline {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostProperties = 256;
constexpr std::size_t kMostProcesses = 1024;  // with a record of their own
constexpr std::size_t kMostCores = 64;        // of one process
constexpr std::size_t kMostNotes = 20;

struct ProcessFiles {
  std::string trace, facts;
  std::vector<std::string> snapshots, cores;
  FrameworkFiles framework;  // TensorFlow's or JAX's
};

std::size_t digits(std::string_view text) {
  const std::size_t end = text.find_first_not_of("0123456789");
  return end == std::string_view::npos ? text.size() : end;
}

// "process-", "12" and ".faultline" of "process-12.faultline"; the process is empty where the name is of another kind.
std::pair<std::string, std::string> split_name(std::string_view name, std::string_view begin) {
  if (!name.starts_with(begin)) return {};
  const std::string_view rest = name.substr(begin.size());
  return {std::string(rest.substr(0, digits(rest))), std::string(rest.substr(digits(rest)))};
}

// What is written at the end of a process that replaced itself is of the last of its programs, "7-2" of "7".
void leave_end_to_last_image(std::map<std::string, ProcessFiles>& found) {
  std::map<std::string, std::pair<std::size_t, std::string>> last;  // of each such process
  for (const auto& [process, files] : found) {
    const std::size_t dash = process.find('-');
    if (dash == std::string::npos || files.framework.tensors.empty()) continue;
    const std::pair<std::size_t, std::string> image(process.size(), process);
    std::pair<std::size_t, std::string>& known = last[process.substr(0, dash)];
    known = std::max(known, image);
  }
  for (const auto& [process, image] : last) {
    ProcessFiles& first = found[process];
    ProcessFiles& later = found[image.second];
    later.facts = std::exchange(first.facts, {});
    later.framework.failure = std::exchange(first.framework.failure, {});
    later.framework.profiles = std::exchange(first.framework.profiles, {});
    later.framework.maps = std::exchange(first.framework.maps, {});
  }
}

std::map<std::string, ProcessFiles> processes_in(const std::string& folder) {
  std::map<std::string, ProcessFiles> found;
  std::map<std::string, FrameworkFiles> of_framework;
  std::error_code problem;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, problem)) {
    const std::string name = entry.path().filename().string();
    const std::string path = entry.path().string();
    if (const auto [process, rest] = split_name(name, layout::kProcess); !process.empty()) {
      // "-2.faultline": a process that replaced itself (exec) goes on under the same number.
      if (rest.ends_with(layout::kTraceEnd))
        found[process + rest.substr(0, rest.size() - layout::kTraceEnd.size())].trace = path;
      if (rest == layout::kFactsEnd) found[process].facts = path;
    } else if (const auto [owner, reason] = split_name(name, layout::kHistory);
               !owner.empty() && reason.starts_with('-') && reason.find(".pickle") != std::string::npos) {
      found[owner].snapshots.push_back(path);
    } else if (const auto [crashed, ending] = split_name(name, layout::kCore); !crashed.empty()) {
      found[crashed].cores.push_back(path);
    } else {
      take_framework_file(path, of_framework);
    }
  }
  for (auto& [process, files] : of_framework) found[process].framework = std::move(files);
  leave_end_to_last_image(found);
  // A process without a record or a history of its own is nothing to report on.
  std::erase_if(found, [](const auto& process) {
    return process.second.trace.empty() && process.second.snapshots.empty() && process.second.cores.empty() &&
           process.second.framework.empty();
  });
  return found;
}

// What failed tells more than what was left at the end; of several the latest.
std::string best_snapshot(const std::vector<std::string>& paths) {
  const auto rank = [](const std::string& path) {
    const std::string name = fs::path(path).filename().string();
    const bool at_exit = name.find("-exit") != std::string::npos;
    std::error_code problem;
    const auto written = fs::last_write_time(path, problem);
    return std::tuple(!at_exit, written, name);
  };
  return *std::max_element(paths.begin(), paths.end(),
                           [&](const std::string& a, const std::string& b) { return rank(a) < rank(b); });
}

// As it would be typed.
std::string typed(const nlohmann::json& words) {
  std::string line;
  for (const nlohmann::json& word : words) {
    if (!word.is_string()) continue;
    const std::string text = word.get<std::string>();
    const bool plain = !text.empty() && text.find_first_of(" \t\n'\"$&|;<>()*?[]`\\#~") == std::string::npos;
    std::string quoted = "'";
    for (const char letter : text) quoted += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
    line += (line.empty() ? "" : " ") + (plain ? text : quoted + "'");
  }
  return line;
}

void flatten(const nlohmann::json& json, const std::string& name, Trace& trace) {
  if (trace.properties.size() >= kMostProperties)
    return trace.count("values of the run's JSON files beyond the first " + std::to_string(kMostProperties));
  if (json.is_object()) {
    for (const auto& [key, value] : json.items()) flatten(value, name + "." + key, trace);
  } else if (json.is_string()) {
    trace.properties.try_emplace(name, json.get<std::string>());
  } else if (json.is_primitive() && !json.is_null()) {
    trace.properties.try_emplace(name, json.dump());
  } else if (json.is_array() && name == "run.command") {
    trace.properties.try_emplace(name, typed(json));
  }
}

// A JSON file of the folder, read once.
struct JsonFile {
  explicit JsonFile(const std::string& path) {
    std::error_code problem;
    // a link that leads nowhere is there, and cannot be read
    if (path.empty() || !fs::exists(fs::symlink_status(path, problem))) return;
    Result<std::string> text = read_plain_file(path, kMostJsonBytes);
    Result<nlohmann::json> parsed = text ? parse_json(*text) : Result<nlohmann::json>(text.error());
    if (parsed)
      json = std::move(*parsed);
    else
      trouble = fs::path(path).filename().string() + ": " + parsed.error().what;
  }

  std::optional<nlohmann::json> json;  // none where there is no such file
  std::string trouble;                 // why it could not be read
};

// Every plain value as a property, named by its path. A file that could not be read is counted.
void take_json(const JsonFile& file, const std::string& name, Trace& trace) {
  if (file.json) flatten(*file.json, name, trace);
  if (!file.trouble.empty()) trace.count("files of the run that could not be read (" + file.trouble + ")");
}

std::optional<Trace> load_part(const std::string& path, std::string_view what,
                               std::map<std::string, std::uint64_t>& lost) {
  Result<Trace> trace = load(path, NamedBy::kInput);
  if (trace) return std::move(*trace);
  ++lost[std::string(what) + " that could not be read (" + trace.error().what + ")"];
  return std::nullopt;
}

void take_facts(const std::string& process, const ProcessFiles& files, const JsonFile& command, Trace& trace) {
  trace.properties.try_emplace("process.pid", process);
  take_json(JsonFile(files.facts), "process", trace);
  take_json(command, "run", trace);
  for (const Heap& heap : trace.heaps) {
    const auto limit = trace.properties.find("process.pools." + heap.name + ".limit");
    if (heap.kind == HeapKind::kBfc && limit != trace.properties.end())
      trace.properties.try_emplace("bfc." + heap.name + ".limit", limit->second);
  }
}

std::optional<Trace> load_process(const std::string& folder, const std::string& process, const ProcessFiles& files,
                                  const JsonFile& command, std::map<std::string, std::uint64_t>& lost) {
  std::optional<Trace> trace;
  if (!files.trace.empty()) {
    trace = load_part(files.trace, "records of a process", lost);
  }
  if (!files.snapshots.empty()) {
    std::optional<Trace> torch = load_part(best_snapshot(files.snapshots), "PyTorch snapshots", lost);
    if (torch && trace)
      trace = join_traces(std::move(*torch), *trace);
    else if (torch)
      trace = std::move(torch);
  }
  for (std::size_t i = 0; i < files.cores.size(); ++i) {
    if (i == kMostCores) {
      lost["GPU core dumps beyond the first " + std::to_string(kMostCores) + " of a process"] +=
          files.cores.size() - kMostCores;
      break;
    }
    const std::string& path = files.cores[i];
    std::optional<Trace> core = load_part(path, "GPU core dumps", lost);
    if (core && trace)
      place_faults(*trace, *core);
    else if (core)
      trace = std::move(core);
  }
  if (!trace) return std::nullopt;
  trace->source_path =
      (fs::path(folder) / fmt::format("{}{}{}", layout::kProcess, process, layout::kTraceEnd)).string();
  take_facts(process, files, command, *trace);
  // What the trace could not say itself: it could not be written to its end.
  if (const auto cut = trace->properties.find(fmt::format("run.cut_short.{}{}", layout::kProcess, process));
      cut != trace->properties.end()) {
    trace->properties.try_emplace(kRecordedUntil,
                                  std::to_string(trace->events.empty() ? 0 : trace->events.back().time_ns));
    trace->properties.try_emplace(kEndedBecause, cut->second);
  }
  const auto is_step = [](const Event& event) { return event.kind == EventKind::kStepMark; };
  if (std::any_of(trace->events.begin(), trace->events.end(), is_step)) trace->capabilities |= kSteps;
  for (const auto& [what, times] : lost) trace->count(what, times);
  return trace;
}

bool touches_memory(const Event& event) {
  switch (event.kind) {
    case EventKind::kAlloc:
    case EventKind::kAllocFailed:
    case EventKind::kMap:
    case EventKind::kCopy:
    case EventKind::kSet:
    case EventKind::kLaunch:
    case EventKind::kFault: return true;
    default: return false;
  }
}

// Devices that the process only looked at are not reported on.
void drop_unused_devices(Trace& trace) {
  std::vector<bool> used;
  for (const Event& event : trace.events) {
    if (!touches_memory(event) && event.kind != EventKind::kFree && event.kind != EventKind::kUnmap) continue;
    if (used.size() <= event.device) used.resize(event.device + std::size_t{1});
    used[event.device] = true;
  }
  if (std::find(used.begin(), used.end(), true) == used.end()) return;
  std::erase_if(trace.devices,
                [&](const Device& device) { return device.index >= used.size() || !used[device.index]; });
}

// run --again: the dump of the second run belongs to the fault of the first.
void take_second_run(const fs::path& folder, std::vector<InputPart>& parts) {
  std::error_code problem;
  if (!fs::is_directory(folder, problem)) return;
  const auto failed_part =
      std::find_if(parts.begin(), parts.end(), [](const InputPart& part) { return part.holds(EventKind::kFault); });
  if (failed_part == parts.end()) return;
  Trace* const failed = &failed_part->trace;
  take_json(JsonFile((folder / layout::kCommand).string()), "again", *failed);
  std::map<std::string, std::uint64_t> lost;
  std::size_t read = 0;
  for (const auto& [process, files] : processes_in(folder.string())) {
    for (const std::string& path : files.cores) {
      if (read++ >= kMostCores) {
        ++lost["GPU core dumps of the second run beyond the first " + std::to_string(kMostCores)];
        continue;
      }
      if (const std::optional<Trace> core = load_part(path, "GPU core dumps of the second run", lost))
        place_second_run(*failed, *core);
    }
  }
  for (const auto& [what, times] : lost) failed->count(what, times);
}

// When the process failed, as far as its events tell; the end of time for one that did not.
std::int64_t failed_at(const Trace& trace) {
  std::int64_t last_refusal = std::numeric_limits<std::int64_t>::max();
  for (const Event& event : trace.events) {
    if (event.kind == EventKind::kFault) return event.time_ns;
    if (event.kind == EventKind::kAllocFailed) last_refusal = event.time_ns;
  }
  return last_refusal;
}

// The plan that a report holds.
std::optional<nlohmann::json> plan_in(const JsonFile& report) {
  if (!report.json || !report.json->is_object()) return std::nullopt;
  const auto plan = report.json->find("plan");
  return plan != report.json->end() && plan->is_object() ? std::optional(*plan) : std::nullopt;
}

// It names the trace it is about. It may have been changed: only what is inside the folder is read.
bool stays_inside(const fs::path& folder, const std::string& name) {
  std::error_code problem;
  const fs::path whole = fs::canonical(folder, problem), path = fs::canonical(folder / name, problem);
  return !problem && !name.empty() &&
         std::mismatch(whole.begin(), whole.end(), path.begin(), path.end()).first == whole.end();
}

Status read_planned(const std::string& folder, const nlohmann::json& plan, Input& input) {
  const auto named = plan.find("trace");
  const std::string name = named != plan.end() && named->is_string() ? named->get<std::string>() : std::string();
  if (!stays_inside(folder, name)) return Error{"report.json names no trace in this folder", {}, {}};
  Result<Trace> trace = load((fs::path(folder) / name).string(), NamedBy::kInput);
  if (!trace) return Error{name + ": " + trace.error().message(), {}, {}};
  if (const auto gpu = plan.find("gpu"); gpu == plan.end() || gpu->is_null()) {
    for (Device& device : trace->devices) device.capacity_bytes = 0;  // no GPU was named: it had no end
  }
  input.kind = trace->source_kind;
  input.parts.push_back({std::move(*trace), {}, {}});
  input.plan = plan.dump();
  return Ok{};
}

Status read_processes(const std::string& folder, const JsonFile& command, Input& input) {
  const auto idle = [](const Trace& trace) {
    return std::none_of(trace.events.begin(), trace.events.end(), touches_memory);
  };
  bool any_busy = false;
  std::size_t read = 0;
  std::map<std::string, std::uint64_t> lost;
  std::vector<InputPart> of_frameworks;
  const std::map<std::string, ProcessFiles> processes = processes_in(folder);
  for (const auto& [process, files] : processes) {
    if (read++ == kMostProcesses) break;
    std::map<std::string, std::uint64_t> lost_here;
    std::optional<Trace> trace = load_process(folder, process, files, command, lost_here);
    for (InputPart& part : framework_parts(files.framework, "process " + process, trace ? &*trace : nullptr, lost)) {
      take_facts(process, files, command, part.trace);
      // the recorder knows it better, where there is one
      if (const auto came = part.trace.properties.find("process.came_to_exit");
          came != part.trace.properties.end() && came->second == "true")
        part.trace.properties.try_emplace("process.ended", "exit");
      of_frameworks.push_back(std::move(part));
    }
    if (!trace) {
      for (const auto& [what, times] : lost_here) lost[what] += times;
      continue;
    }
    const bool is_busy = !idle(*trace);
    // those that touched no memory are told of only where there is no other
    if (is_busy && !any_busy) input.parts.clear();
    any_busy |= is_busy;
    if (is_busy || !any_busy) input.parts.push_back({std::move(*trace), "process " + process, {}});
  }
  if (!any_busy && !of_frameworks.empty()) input.parts.clear();
  for (InputPart& part : of_frameworks) input.parts.push_back(std::move(part));
  if (input.parts.empty()) {
    if (std::string words = cpu_build_words(folder); !words.empty()) return Error{std::move(words), {}, {}};
    return Error{lost.empty() ? "this folder holds no record of a process: no GPU was used, or none could be recorded"
                              : "nothing in this folder could be read: " + lost.begin()->first,
                 {},
                 {}};
  }
  for (InputPart& part : input.parts) drop_unused_devices(part.trace);
  std::stable_sort(input.parts.begin(), input.parts.end(),
                   [](const InputPart& a, const InputPart& b) { return failed_at(a.trace) < failed_at(b.trace); });
  take_second_run(fs::path(folder) / layout::kAgain, input.parts);
  input.lost = std::move(lost);
  if (processes.size() > kMostProcesses)
    input.lost["processes beyond the first " + std::to_string(kMostProcesses) + ", which were not read"] =
        processes.size() - kMostProcesses;
  return Ok{};
}

std::vector<std::string> sentences_of(const JsonFile& file, const char* name) {
  std::vector<std::string> sentences;
  if (!file.json || !file.json->is_object() || !file.json->contains(name) || !(*file.json)[name].is_array())
    return sentences;
  for (const nlohmann::json& sentence : (*file.json)[name]) {
    if (sentence.is_string() && sentences.size() < kMostNotes) sentences.push_back(sentence.get<std::string>());
  }
  return sentences;
}

}  // namespace

std::vector<std::string> notes_in(const std::string& folder) {
  std::vector<std::string> notes;
  std::error_code problem;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, problem)) {
    if (!entry.path().filename().string().starts_with(layout::kNotes)) continue;
    const Result<std::string> text = read_plain_file(entry.path().string(), kMostJsonBytes);
    std::istringstream lines(text ? *text : std::string());
    for (std::string sentence; std::getline(lines, sentence) && notes.size() < kMostNotes;) {
      if (!sentence.empty() && std::find(notes.begin(), notes.end(), sentence) == notes.end())
        notes.push_back(sentence);
    }
  }
  return notes;
}

std::vector<std::string> cpu_builds_in(const std::string& folder) {
  std::vector<std::string> builds;
  std::error_code problem;
  std::size_t read = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, problem)) {
    const auto [process, rest] = split_name(entry.path().filename().string(), layout::kProcess);
    if (process.empty() || rest != layout::kFactsEnd || read++ == kMostProcesses) continue;
    for (std::string& build : sentences_of(JsonFile(entry.path().string()), "cpu_builds")) {
      if (std::find(builds.begin(), builds.end(), build) == builds.end() && builds.size() < kMostNotes)
        builds.push_back(std::move(build));
    }
  }
  std::sort(builds.begin(), builds.end());
  return builds;
}

std::string cpu_build_words(const std::string& folder) {
  const std::vector<std::string> builds = cpu_builds_in(folder);
  if (builds.empty()) return {};
  std::string names;
  for (const std::string& build : builds) names += (names.empty() ? "" : " and ") + build;
  const JsonFile run((fs::path(folder) / layout::kCommand).string());
  const bool is_known = run.json && run.json->is_object() && run.json->contains("command");
  const std::string command = is_known ? typed((*run.json)["command"]) : "python PROGRAM.py";
  return fmt::format(
      "no call to the CUDA driver was seen: the program uses {}, built for the CPU alone, which never calls the "
      "driver; "
      "nothing can be said of its GPU memory. What it would take on a GPU, without one: faultline plan --gpu T4 "
      "-- {}. To record it, install a build with CUDA",
      names, command);
}

bool holds_processes(const std::string& folder) { return !processes_in(folder).empty(); }

bool holds_run(const std::string& folder) {
  std::error_code problem;
  return holds_processes(folder) || fs::exists(fs::path(folder) / layout::kReport, problem) ||
         fs::exists(fs::path(folder) / layout::kCommand, problem);
}

Result<Input> read_run(const std::string& folder) {
  Input input;
  const JsonFile report((fs::path(folder) / layout::kReport).string());
  const JsonFile command((fs::path(folder) / layout::kCommand).string());
  const std::optional<nlohmann::json> plan = plan_in(report);
  Status read = plan ? read_planned(folder, *plan, input) : read_processes(folder, command, input);
  if (!read && !report.trouble.empty()) return Error{report.trouble, {}, {}};
  if (!read) return read.error();
  if (!report.trouble.empty()) ++input.lost["files of the run that could not be read (" + report.trouble + ")"];
  input.left_out = sentences_of(command, "left_out");
  input.notes = notes_in(folder);
  return input;
}

}  // namespace faultline
