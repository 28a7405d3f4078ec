// The phases of a plan, on the terminal: one short row each where there is more than one.
#pragma once

#include "plan/plan.h"
#include "report/page.h"

namespace faultline {

void print_phases(Page& page, const Plan& plan);

}  // namespace faultline
