// What is said about a dry run before anything is tried: the verdict, the failure, the peak and what fills it, what was assumed.
#pragma once

#include "plan/make_plan.h"

namespace faultline {

// Everything but the changes and the search. told: the first run, or after an out-of-memory the one on a device that grew; run: its trace, judged.
Plan describe(const PlanQuestion& question, const DryRunResult& first, const DryRunResult& told, const PlannedRun& run,
              bool interrupted);

// It ran out of memory with what is likely, and would not with what is estimated at its least: that is no proof.
void weaken_failures(const Plan& plan, std::vector<Finding>& findings);

}  // namespace faultline
