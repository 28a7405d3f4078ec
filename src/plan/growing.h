// Of a program that was stopped, or of which a loop was cut short: memory that grows, taken to the end.
#pragma once

#include <vector>

#include "facts/facts.h"
#include "plan/dry_run.h"
#include "plan/make_plan.h"
#include "plan/plan.h"
#include "rules/finding.h"

namespace faultline {

// Memory that grew with every step: about the last step for which there is room, the context counted.
void describe_growth(const std::vector<Finding>& findings, const Facts& facts, std::size_t slot, Plan& plan);

// A loop that was cut short while memory rose in it: what it takes to its end, by the model of the allocator.
void describe_cut_loops(const ProcessSummary& main, const PlannedRun& run, Plan& plan);

// What is still to come of what has a limit.
void describe_limits(const std::vector<Finding>& findings, const Facts& facts, std::size_t slot, Plan& plan);

}  // namespace faultline
