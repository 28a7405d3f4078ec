#include "cli/run_folder.h"

#include <algorithm>
#include <filesystem>

#include "cli/plan_folder.h"
#include "report/plan_json.h"
#include "sources/run_folder/run_folder.h"
#include "sources/source.h"

namespace faultline::cli {
namespace {

namespace fs = std::filesystem;

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
  if (Result<std::string> report = read_text_file(path + "/report.json")) folder.plan = plan_of_report(*report);
  if (folder.plan && stays_inside(folder.plan->trace)) {
    Result<Trace> trace = load((fs::path(path) / folder.plan->trace).string());
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
    return folder;
  }
  std::vector<std::string> names;
  std::error_code problem;
  for (const fs::directory_entry& entry : fs::directory_iterator(path, problem)) {
    if (entry.path().extension() == ".faultline") names.push_back(entry.path().string());
  }
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) {
    Result<Trace> trace = load(name);
    if (!trace) return Error{trace.error().message(fs::path(name).filename().string()), {}, {}};
    folder.traces.push_back(std::move(*trace));
  }
  if (folder.traces.empty()) return Error{"this folder holds no run of Faultline", {}, {}};
  return folder;
}

}  // namespace faultline::cli
