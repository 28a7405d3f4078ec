// What is said about a dry run before anything is tried: the verdict, the failure, the peak and what fills it, what was assumed.
#pragma once

#include "plan/make_plan.h"

namespace faultline {

// Everything but the changes and the search. told: the first run, or after an out-of-memory the one on a device that grew; run: its trace, judged.
Plan describe(const PlanQuestion& question, const DryRunResult& first, const DryRunResult& told, const PlannedRun& run,
              bool interrupted);

// A program that ran to its end grows no further: what it kept until then is a note where it is small beside the GPU.
void make_notes_of_what_cannot_hurt(const Plan& plan, std::vector<Finding>& findings);

}  // namespace faultline
