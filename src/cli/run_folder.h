// The folder that a run or a plan leaves, read again: the traces of its processes, and what a plan found out by running the program again.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "plan/plan.h"
#include "trace/trace.h"

namespace faultline::cli {

bool is_run_folder(const std::string& path);  // any folder: what is in it is seen when it is read

struct RunFolder {
  std::vector<Trace> traces;  // with a plan the one it is about; of a run one for each process, the one that failed first before the others
  std::optional<Plan> plan;
};
Result<RunFolder> load_run_folder(const std::string& path);

}  // namespace faultline::cli
