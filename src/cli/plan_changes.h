// What would make it fit: allocator settings by replay, changes to the program by running it again with them.
#pragma once

#include <cstdint>
#include <string>

#include "cli/plan_run.h"
#include "cli/plan_verdict.h"
#include "report/plan.h"

namespace faultline::cli {

// What every attempt starts from.
struct Attempts {
  const PlanParts& parts;
  const DryRunJob& job;             // as the program was run first
  const ProcessSummary& baseline;   // what it left
  const JudgedRun& judged;
  const GivenInput& input;
};

// How much a rerun needed, counted as for the first: by replay of its trace.
struct Needed {
  std::uint64_t bytes = 0;
  bool fits = false;
  std::string problem;  // it ended by an error of its own, or could not be run: the numbers mean nothing
};
Needed needed_by(const DryRunResult& run, const DryRunRequest& request);

void add_settings(const Attempts& attempts, Plan& plan);
void add_changes(const Attempts& attempts, Plan& plan);

}  // namespace faultline::cli
