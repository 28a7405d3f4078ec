// What is said about a dry run before anything is tried: the verdict, the failure, the peak and what fills it, what was assumed.
#pragma once

#include "plan/make_plan.h"
#include "plan/needs.h"

namespace faultline {

struct Seen {
  const PlanQuestion& question;
  const DryRunResult& first;  // as the user would run it
  const DryRunResult& told;   // likewise, or after an out-of-memory the run on a device that grew
  const Trace& trace;         // of `told`, like what follows
  const Judgement& judgement;
  const Needs& needs;
  bool interrupted = false;
};

// Everything but the changes and the search.
Plan describe(const Seen& seen);

}  // namespace faultline
