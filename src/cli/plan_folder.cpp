#include "cli/plan_folder.h"

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "base/json_fields.h"
#include "base/json_input.h"
#include "base/plain_file.h"
#include "base/safe_text.h"
#include "cli/installation.h"
#include "cli/plain_path.h"
#include "confine/filter.h"
#include "fmt/format.h"

namespace faultline::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kLibrary = "libfaultline_dryrun.so";

// A name for the folder: the script's where an interpreter runs one, else the program's.
std::string program_name(const std::vector<std::string>& command) {
  fs::path chosen = command.front();
  for (const std::string& word : command) {
    if (fs::path(word).extension() == ".py") {
      chosen = word;
      break;
    }
  }
  std::string name = chosen.stem().string();
  std::replace_if(name.begin(), name.end(), [](unsigned char c) { return !std::isalnum(c) && c != '-' && c != '_' && c != '.'; }, '_');
  return name.empty() ? "program" : name.substr(0, 64);
}

std::string time_text() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  ::localtime_r(&now, &local);
  char text[32];
  std::strftime(text, sizeof text, "%Y%m%d-%H%M%S", &local);
  return text;
}

// For a process that puts itself under the watch: faultline.plan(function).
Json filter_json() {
  Json filter = Json::array();
  for (const sock_filter& step : confine::confining_filter(false)) filter.push_back({step.code, step.jt, step.jf, step.k});
  return filter;
}

// What this dry run's own checkpoints begin with: nobody else's file does.
std::string token() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", random(), random(), random(), random());
}

Json change_json(const std::string& value) {
  if (value == "true") return true;
  if (value == "false") return false;
  return value;
}

std::optional<PlanException> exception_of(const Json& json) {
  const auto found = json.find("exception");
  if (found == json.end() || !found->is_object()) return std::nullopt;
  PlanException exception{text(*found, "type"), text(*found, "message"), {}};
  exception.location.file = text(*found, "file");
  exception.location.line = static_cast<std::uint32_t>(whole(*found, "line"));
  exception.location.function = text(*found, "function");
  return exception;
}

void read_vary(const Json& json, ProcessSummary& summary) {
  const auto vary = json.find("vary");
  if (vary == json.end() || !vary->is_object() || !vary->contains("found") || !(*vary)["found"].is_array()) return;
  for (const Json& place : (*vary)["found"]) {
    if (!place.is_object()) continue;
    // Where the name stands several times, the largest is the one that fills the memory.
    summary.vary_value = std::max(summary.vary_value, whole(place, "value"));
    if (summary.vary_where.size() > 120) continue;
    const std::string name = fs::path(text(place, "file")).filename().string();
    summary.vary_where += fmt::format("{}{}:{}", summary.vary_where.empty() ? "" : ", ", name, whole(place, "line"));
  }
}

void read_summary(const std::string& path, ProcessSummary& summary) {
  Result<std::string> content = read_text_file(path);
  if (!content) return;
  const Result<Json> parsed = parse_json<Json>(*content);
  if (!parsed || !parsed->is_object()) return;
  const Json& json = *parsed;
  summary.ended_in_order = true;
  summary.peak_reserved = whole(json, "peak_reserved");
  summary.allocations = whole(json, "allocations");
  summary.failures = whole(json, "ooms");
  summary.operations = whole(json, "operations");
  summary.steps = whole(json, "steps");
  summary.stopped = text(json, "stopped");
  summary.unsupported = text(json, "unsupported");
  summary.exception = exception_of(json);
  summary.uses = names_of(json, "uses");
  if (const auto changes = json.find("changes"); changes != json.end() && changes->is_object()) {
    for (const auto& [name, words] : changes->items()) summary.changes[name] = words.is_string() ? words.get<std::string>() : std::string();
  }
  read_vary(json, summary);
}

}  // namespace

Result<PlanParts> find_plan_parts() {
  PlanParts parts{python_part(), library_part(kLibrary)};
  if (parts.python.empty() || parts.library.empty()) {
    return Error{fmt::format("{} was not found beside the executable ({})", parts.python.empty() ? "Faultline's Python package" : kLibrary, executable_folder()), {},
                 "Set FAULTLINE_HOME to the folder that has python/ and build/ in it."};
  }
  Result<std::string> python = plain_path(parts.python, kSearchPathSeparators, {});
  if (!python) return python.error();
  parts.python = *python;
  return parts;
}

Result<std::string> make_run_folder(const std::string& wanted, const std::vector<std::string>& command) {
  std::error_code problem;
  std::string path = wanted;
  if (wanted.empty()) {
    const std::string base = fmt::format("faultline-{}-{}", program_name(command), time_text());
    path = base;
    for (int more = 2;; ++more) {
      Result<bool> made = make_new_private_folder(path);
      if (!made) return made.error();
      if (*made) break;
      path = base + fmt::format("-{}", more);
    }
  } else {
    if (fs::exists(fs::path(path) / "command.json", problem)) return Error{"the folder " + wanted + " already holds a run", {}, "Give another with -o, or remove it."};
    if (Status made = make_private_folder(path); !made) return made.error();
  }
  const fs::path absolute = fs::canonical(path, problem);  // as the kernel names it: through no link
  if (problem) return Error{"the folder " + path + " could not be found again: " + problem.message(), {}, {}};
  if (Status written = write_text((absolute / "command.json").string(), "{}\n"); !written) return written.error();
  return absolute.string();
}

Status write_request(const std::string& folder, const PlanParts& parts, const DryRunRequest& request, bool confined) {
  const Gpu& gpu = request.gpu;
  Json changes = Json::object();
  for (const auto& [name, value] : request.changes) changes[name] = change_json(value);
  const Json json = {
      {"folder", folder},
      {"library", parts.library},
      {"gpu",
       {{"name", request.gpu_name},
        {"capacity_bytes", gpu.capacity_bytes},
        {"context_bytes", gpu.context_bytes},
        {"compute_capability", {gpu.compute_major, gpu.compute_minor}},
        {"multi_processor_count", gpu.sm_count},
        {"max_threads_per_multi_processor", gpu.max_threads_per_sm},
        {"warp_size", gpu.warp_size},
        {"l2_cache_size", gpu.l2_bytes},
        {"shared_memory_per_block_optin", gpu.max_shared_bytes_per_block}}},
      {"confined", confined},
      {"filter", filter_json()},
      {"token", token()},
      {"overcommit", request.overcommit},
      {"real", request.real},
      {"steps", request.steps},
      {"seconds", request.seconds},
      {"changes", std::move(changes)},
      {"vary", request.vary ? Json{{"name", request.vary->first}, {"value", request.vary->second}} : Json(nullptr)},
  };
  if (Status made = make_private_folder(folder); !made) return made;
  return write_text(folder + "/plan.json", json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

std::vector<ProcessSummary> read_summaries(const std::string& folder) {
  std::map<std::string, ProcessSummary> by_process;
  std::error_code problem;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, problem)) {
    const std::string name = entry.path().filename().string();
    const std::string process = name.substr(0, name.rfind('.')).substr(std::min(name.find('-') + 1, name.rfind('.')));
    if (name.starts_with("trace-") && name.ends_with(".faultline")) by_process[process].trace = entry.path().string();
    if (name.starts_with("summary-") && name.ends_with(".json")) read_summary(entry.path().string(), by_process[process]);
  }
  std::vector<ProcessSummary> summaries;
  for (auto& [process, summary] : by_process) summaries.push_back(std::move(summary));
  most_needing_first(summaries);
  return summaries;
}

Status write_command(const std::string& folder, const CommandRecord& record) {
  Json json = {{"verb", record.verb}, {"command", record.command}, {"exit_status", record.exit_status}, {"started", record.started}, {"seconds", record.seconds}};
  for (const auto& [name, choice] : record.choices) json[name] = choice;
  if (record.left_out) json["left_out"] = *record.left_out;
  return write_text(folder + "/command.json", json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

std::string shown_folder(const std::string& folder) {
  std::error_code problem;  // the program may have removed the folder we stand in
  const std::string near = fs::path(folder).lexically_relative(fs::current_path(problem)).string();
  return shown(near.empty() || near.starts_with("..") ? folder : near);
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

Result<std::string> read_text_file(const std::string& path) { return read_plain_file(path, kMostJsonBytes); }

}  // namespace faultline::cli
