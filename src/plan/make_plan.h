// From what a dry run left to what is said about it: how much it needs, whether it fits, what would make it fit. The one way to a Plan.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "models/gpus.h"
#include "plan/dry_run.h"
#include "plan/needs.h"
#include "plan/plan.h"
#include "rules/judge.h"
#include "trace/trace.h"

namespace faultline {

struct PlanQuestion {
  std::vector<std::string> command;
  std::vector<Gpu> gpus;  // none: not named
  bool names_gpu() const { return !gpus.empty(); }
  const Gpu& gpu_at(std::size_t slot) const { return gpus[slot < gpus.size() ? slot : 0]; }  // of those named
  std::string folder;  // where the first run is kept
  std::string vary;  // the number to search the largest fitting value of; empty: the usual ones, where it does not fit
  std::uint64_t ranks = 0;    // that were asked for; 0: as the program says
  bool real = false;          // numbers were computed
  bool may_run_again = true;  // a program that writes for real, unless it was asked for
  bool try_changes = false;   // also when it fits, or takes long
  bool no_try = false;
  bool steps_asked = false, seconds_asked = false;  // how far to go was the user's wish
};

// Why there is nothing to plan, or nothing.
std::string nothing_planned(const PlanQuestion& question, const DryRunResult& first);

// The trace that the plan is about, which must not move while its judgement is looked at.
struct PlannedRun {
  Trace trace;
  Judgement judgement;
  Needs needs;
  Plan plan;
};

// first: the program as the user would run it, of which something was planned.
Result<std::unique_ptr<PlannedRun>> make_plan(const PlanQuestion& question, const DryRunResult& first,
                                              const Reruns& reruns);

}  // namespace faultline
