// tensor/silent-upcast: memory that exists only because a type was widened where the program did not ask for it.
#pragma once

#include <vector>

#include "rules/rule.h"

namespace faultline {

void judge_silent_upcast(Case& subject, std::vector<Finding>& findings, std::vector<NotJudged>& not_judged);

}  // namespace faultline
