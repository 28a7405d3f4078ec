#include "sources/run_folder/run_folder.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "sources/run_folder/join.h"
#include "sources/run_folder/place_faults.h"
#include "sources/run_folder/second_run.h"
#include "sources/source.h"
#include "sources/symbolise.h"

namespace faultline {
namespace {

namespace fs = std::filesystem;

constexpr std::uintmax_t kMostJsonBytes = 16u << 20;
constexpr std::size_t kMostProperties = 256;
constexpr std::string_view kRunSource = "run";

struct ProcessFiles {
  std::string trace, facts;
  std::vector<std::string> snapshots, cores;
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

std::map<std::string, ProcessFiles> processes_in(const std::string& folder) {
  std::map<std::string, ProcessFiles> found;
  std::error_code problem;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, problem)) {
    const std::string name = entry.path().filename().string();
    const std::string path = entry.path().string();
    if (const auto [process, rest] = split_name(name, "process-"); !process.empty()) {
      constexpr std::string_view kTrace = ".faultline";
      // "-2.faultline": a process that replaced itself (exec) goes on under the same number.
      if (rest.ends_with(kTrace)) found[process + rest.substr(0, rest.size() - kTrace.size())].trace = path;
      if (rest == ".json") found[process].facts = path;
    } else if (const auto [owner, reason] = split_name(name, "torch-"); !owner.empty() && reason.find(".pickle") != std::string::npos) {
      found[owner].snapshots.push_back(path);
    } else if (const auto [crashed, ending] = split_name(name, "core-"); !crashed.empty()) {
      found[crashed].cores.push_back(path);
    }
  }
  // A process without a record or a history of its own is nothing to report on.
  std::erase_if(found, [](const auto& process) { return process.second.trace.empty() && process.second.snapshots.empty() && process.second.cores.empty(); });
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
  return *std::max_element(paths.begin(), paths.end(), [&](const std::string& a, const std::string& b) { return rank(a) < rank(b); });
}

void flatten(const nlohmann::json& json, const std::string& name, Trace& trace) {
  if (trace.properties.size() >= kMostProperties) return;
  if (json.is_object()) {
    for (const auto& [key, value] : json.items()) flatten(value, name + "." + key, trace);
  } else if (json.is_string()) {
    trace.properties.try_emplace(name, json.get<std::string>());
  } else if (json.is_primitive() && !json.is_null()) {
    trace.properties.try_emplace(name, json.dump());
  }
}

// Every plain value of a JSON file as a property, named by its path. A file that is none is counted.
void take_json(const std::string& path, const std::string& name, Trace& trace) {
  std::error_code problem;
  if (path.empty() || !fs::is_regular_file(path, problem)) return;
  if (fs::file_size(path, problem) > kMostJsonBytes) return trace.count("files of the run that are too large", 1);
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  const nlohmann::json json = nlohmann::json::parse(text.str(), nullptr, false);
  if (json.is_discarded()) return trace.count("files of the run that are no JSON", 1);
  flatten(json, name, trace);
}

std::optional<Trace> load_part(const std::string& path, std::string_view what, std::map<std::string, std::uint64_t>& lost) {
  Result<Trace> trace = load(path);
  if (trace) return std::move(*trace);
  ++lost[std::string(what) + " that could not be read (" + trace.error().what + ")"];
  return std::nullopt;
}

std::optional<Trace> load_process(const std::string& folder, const std::string& process, const ProcessFiles& files, std::map<std::string, std::uint64_t>& lost) {
  std::optional<Trace> trace;
  if (!files.trace.empty()) {
    trace = load_part(files.trace, "records of a process", lost);
    if (trace) symbolise(*trace);
  }
  if (!files.snapshots.empty()) {
    std::optional<Trace> torch = load_part(best_snapshot(files.snapshots), "PyTorch snapshots", lost);
    if (torch && trace) trace = join_traces(std::move(*torch), *trace);
    else if (torch) trace = std::move(torch);
  }
  for (const std::string& path : files.cores) {
    std::optional<Trace> core = load_part(path, "GPU core dumps", lost);
    if (core && trace) place_faults(*trace, *core);
    else if (core) trace = std::move(core);
  }
  if (!trace) return std::nullopt;
  trace->source_kind = kRunSource;
  trace->source_path = (fs::path(folder) / ("process-" + process + ".faultline")).string();
  trace->properties.try_emplace("process.pid", process);
  take_json(files.facts, "process", *trace);
  take_json((fs::path(folder) / "command.json").string(), "run", *trace);
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
  std::erase_if(trace.devices, [&](const Device& device) { return device.index >= used.size() || !used[device.index]; });
}

// run --again: the dump of the second run belongs to the fault of the first.
void take_second_run(const fs::path& folder, std::vector<Trace>& traces) {
  std::error_code problem;
  if (!fs::is_directory(folder, problem)) return;
  const auto has_fault = [](const Trace& trace) { return std::any_of(trace.events.begin(), trace.events.end(), [](const Event& event) { return event.kind == EventKind::kFault; }); };
  const auto failed = std::find_if(traces.begin(), traces.end(), has_fault);
  if (failed == traces.end()) return;
  take_json((folder / "command.json").string(), "again", *failed);
  std::map<std::string, std::uint64_t> lost;
  for (const auto& [process, files] : processes_in(folder.string())) {
    for (const std::string& path : files.cores) {
      if (const std::optional<Trace> core = load_part(path, "GPU core dumps of the second run", lost)) place_second_run(*failed, *core);
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

}  // namespace

bool holds_run(const std::string& folder) { return !processes_in(folder).empty(); }

Result<std::vector<Trace>> load_run(const std::string& folder) {
  std::vector<Trace> traces;
  std::map<std::string, std::uint64_t> lost;
  for (const auto& [process, files] : processes_in(folder)) {
    std::map<std::string, std::uint64_t> lost_here;
    if (std::optional<Trace> trace = load_process(folder, process, files, lost_here)) traces.push_back(std::move(*trace));
    else lost.insert(lost_here.begin(), lost_here.end());
  }
  if (traces.empty()) {
    return Error{lost.empty() ? "this folder holds no record of a process" : "nothing in this folder could be read: " + lost.begin()->first, {}, {}};
  }
  const auto idle = [](const Trace& trace) { return std::none_of(trace.events.begin(), trace.events.end(), touches_memory); };
  if (!std::all_of(traces.begin(), traces.end(), idle)) std::erase_if(traces, idle);
  for (Trace& trace : traces) drop_unused_devices(trace);
  std::stable_sort(traces.begin(), traces.end(), [](const Trace& a, const Trace& b) { return failed_at(a) < failed_at(b); });
  take_second_run(fs::path(folder) / "again", traces);
  return traces;
}

}  // namespace faultline
