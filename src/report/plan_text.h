// The plan on the terminal, before the findings: the verdict in one line, where it fails, what fills the memory, what would make it fit, what was assumed.
#pragma once

#include <string>

#include "plan/plan.h"
#include "report/page.h"

namespace faultline {

void print_plan(Page& page, const Plan& plan, bool verbose);

// For the SUMMARY line: "does not fit, 3.75 GiB too little".
std::string summary_of(const Plan& plan);

}  // namespace faultline
