// Runs the user's program under a dry run: in the foreground as the user started it, or quietly beside others.
// A quiet run writes to log.txt in its folder. The environment is the user's, plus what brings the dry run in.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/child_process.h"
#include "cli/plan_folder.h"

namespace faultline::cli {

struct DryRunResult {
  int status = 0;  // 128 + N: ended by signal N
  double seconds = 0;
  std::vector<ProcessSummary> processes;  // see read_summaries
  std::string folder;
  const ProcessSummary* main() const { return processes.empty() ? nullptr : &processes.front(); }
};

struct DryRunJob {
  std::vector<std::string> command;
  DryRunRequest request;
  std::string folder;
};

// The Error is about starting it: the program was not found, is not executable.
Result<DryRunResult> run_in_foreground(const PlanParts& parts, const DryRunJob& job, Output output);

// Several at once, at most as many as the machine has cores. The answers stand in the order of the jobs; a job that could not be started has no
// processes.
std::vector<DryRunResult> run_quietly(const PlanParts& parts, const std::vector<DryRunJob>& jobs);

}  // namespace faultline::cli
