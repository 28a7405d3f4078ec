// memory/leak: memory that some line keeps, round after round.
#pragma once

#include "rules/rule.h"

namespace faultline {

void judge_leak(Case& subject, std::vector<Finding>& findings, std::vector<NotJudged>& not_judged);

}  // namespace faultline
