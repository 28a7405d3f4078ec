// The folder that a run leaves, read again: its traces, and what the run itself found out by running the program again.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "report/plan.h"
#include "trace/trace.h"

namespace faultline::cli {

bool is_run_folder(const std::string& path);  // any folder: what is in it is seen when it is read

struct RunFolder {
  std::vector<Trace> traces;  // with a plan the one it is about, else all
  std::optional<Plan> plan;
};
Result<RunFolder> load_run_folder(const std::string& path);

}  // namespace faultline::cli
