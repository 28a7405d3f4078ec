// The last word on the findings of a run that was planned: what they mean beside the plan's verdict, the changes that were tried as advice, the limits that
// are broken, and the order to read them in. Nothing changes a finding after that.
#pragma once

#include <vector>

#include "plan/plan.h"

namespace faultline {

// holders: who holds the memory of the plan's GPU at its peak.
void settle_findings(const Plan& plan, const std::vector<Holder>& holders, std::vector<Finding>& findings,
                     std::vector<NotJudged>& not_judged);

}  // namespace faultline
