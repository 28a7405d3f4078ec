// The plan on the terminal, before the findings: the verdict in one line, where it fails, what fills the memory, what would make it fit, what was assumed.
#pragma once

#include "plan/plan.h"
#include "report/page.h"

namespace faultline {

// What the rest of the report knows of it.
struct PlanContext {
  // the out-of-memory that ended it, where the plan's page tells of it and no finding does
  const Finding* failure = nullptr;
  // what piles up until the GPU is full, where a finding below tells of it
  const Finding* leak = nullptr;
  // what piles up and may be meant to
  const Finding* perhaps_leak = nullptr;
  bool exception_is_judged = false;  // a finding explains it
  bool verbose = false;
  bool brief = false;         // the verdict, the line, the sum at the peak, and the best thing to do
  bool verdict_only = false;  // the verdict alone: a finding stands above and says why the program ended
};
void print_plan(Page& page, const Plan& plan, const PlanContext& context);

}  // namespace faultline
