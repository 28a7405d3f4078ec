#include "cli/run_folder.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "base/json_input.h"
#include "base/units.h"
#include "cli/plan_folder.h"
#include "fmt/format.h"
#include "report/plan_json.h"
#include "sources/run_folder/run_folder.h"
#include "sources/source.h"

namespace faultline::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostTraces = 1024;

// The report of a folder names its trace. It may have been changed: only what is inside the folder is read.
bool stays_inside(const fs::path& path) {
  return !path.empty() && path.is_relative() && std::none_of(path.begin(), path.end(), [](const fs::path& part) { return part == ".."; });
}

}  // namespace

bool is_run_folder(const std::string& path) {
  std::error_code problem;
  return fs::is_directory(path, problem);
}

Result<RunFolder> load_run_folder(const std::string& path) {
  RunFolder folder;
  std::optional<Error> bad_report;
  std::error_code problem;
  if (const fs::path name = fs::path(path) / "report.json"; fs::exists(name, problem)) {
    const Result<std::string> report = read_text_file(name.string());
    const Status checked = report ? check_json(*report) : Status(report.error());
    if (checked) folder.plan = plan_of_report(*report);
    else bad_report = checked.error();
  }
  if (folder.plan && stays_inside(folder.plan->trace)) {
    Result<Trace> trace = load((fs::path(path) / folder.plan->trace).string(), NamedBy::kInput);
    if (!trace) return Error{folder.plan->trace + ": " + trace.error().message(), {}, {}};
    if (!folder.plan->gpu) {
      for (Device& device : trace->devices) device.capacity_bytes = 0;  // no GPU was named: it had no end
    }
    folder.traces.push_back(std::move(*trace));
    return folder;
  }
  folder.plan.reset();
  if (holds_run(path)) {
    Result<std::vector<Trace>> traces = load_run(path);
    if (!traces) return traces.error();
    folder.traces = std::move(*traces);
    if (bad_report) folder.traces.front().count("files of the run that could not be read (report.json: " + bad_report->what + ")");
    return folder;
  }
  if (bad_report) return Error{"report.json: " + bad_report->message(), {}, {}};
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(path, problem)) {
    if (entry.path().extension() == ".faultline") names.push_back(entry.path().string());
  }
  std::sort(names.begin(), names.end());
  if (names.size() > kMostTraces) return Error{fmt::format("this folder holds {} traces; at most {} are read together", format_count(names.size()), format_count(kMostTraces)), {}, "Name the one to explain."};
  for (const std::string& name : names) {
    Result<Trace> trace = load(name, NamedBy::kInput);
    if (!trace) return Error{trace.error().message(fs::path(name).filename().string()), {}, {}};
    folder.traces.push_back(std::move(*trace));
  }
  if (folder.traces.empty()) return Error{"this folder holds no run of Faultline", {}, {}};
  return folder;
}

}  // namespace faultline::cli
