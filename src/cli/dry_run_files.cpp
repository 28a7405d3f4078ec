#include "cli/dry_run_files.h"

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
#include "cli/run_folder.h"
#include "confine/filter.h"
#include "fmt/format.h"
#include "sources/run_folder/layout.h"

namespace faultline::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kLibrary = "libfaultline_dryrun.so";

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
  return write_text((fs::path(folder) / layout::kRequest).string(), json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

std::vector<ProcessSummary> read_summaries(const std::string& folder) {
  std::map<std::string, ProcessSummary> by_process;
  std::error_code problem;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, problem)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(layout::kProcess)) continue;
    const std::string process = entry.path().stem().string();
    if (name.ends_with(layout::kTraceEnd)) by_process[process].trace = entry.path().string();
    if (name.ends_with(layout::kFactsEnd)) read_summary(entry.path().string(), by_process[process]);
  }
  std::vector<ProcessSummary> summaries;
  for (auto& [process, summary] : by_process) summaries.push_back(std::move(summary));
  most_needing_first(summaries);
  return summaries;
}

}  // namespace faultline::cli
