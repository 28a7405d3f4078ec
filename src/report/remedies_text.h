// What would make a plan fit, on the terminal: what was tried, the least intrusive first, and the GPUs on which it fits.
#pragma once

#include "plan/plan.h"
#include "report/page.h"

namespace faultline {

void print_remedies(Page& page, const Plan& plan, bool verbose);

}  // namespace faultline
