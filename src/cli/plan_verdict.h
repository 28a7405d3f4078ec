// From what a dry run left to what is said about it: the Plan, and the report with the findings of its trace.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/plan_run.h"
#include "models/gpus.h"
#include "report/report.h"
#include "rules/judge.h"
#include "trace/trace.h"

namespace faultline::cli {

// The trace must not move while its judgement is looked at.
struct JudgedRun {
  Trace trace;
  Judgement judgement;
  std::uint64_t outside_bytes = 0;
};
// endless: no GPU was named, the capacity of the trace is not one.
Result<std::unique_ptr<JudgedRun>> judge_run(const std::string& trace_path, bool endless);

struct VerdictInput {
  std::vector<std::string> command;
  std::optional<Gpu> gpu;  // none: not named
  std::uint64_t context_bytes = 0;
  std::string folder;
  const DryRunResult* first = nullptr;          // as the user would run it
  const DryRunResult* overcommitted = nullptr;  // after an out-of-memory; null: not needed
  bool real = false;
};

// Everything but the changes and the search, which come after it.
Plan make_plan(const VerdictInput& input, const JudgedRun& judged);

// What such a GPU is, in the report's words.
PlanGpu plan_gpu(const Gpu& gpu);

}  // namespace faultline::cli
