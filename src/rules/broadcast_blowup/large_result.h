// A request that could not be served because its result is many times larger than what it is made of: every row of one tensor with every row of another.
#pragma once

#include <vector>

#include "rules/rule.h"

namespace faultline {

void judge_large_results(Case& subject, std::vector<Finding>& findings);

}  // namespace faultline
