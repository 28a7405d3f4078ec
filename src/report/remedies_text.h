// What would make a plan fit, on the terminal: what was tried, the least intrusive first, and the GPUs on which it fits.
#pragma once

#include "plan/plan.h"
#include "report/page.h"

namespace faultline {

// `perhaps_leak`: what piles up round after round and may be meant to; a finding below tells of it.
void print_remedies(Page& page, const Plan& plan, bool verbose, const Finding* perhaps_leak = nullptr);

// The one to begin with, whether it fits or not.
void print_best_remedy(Page& page, const Plan& plan, const Finding* perhaps_leak = nullptr);

}  // namespace faultline
