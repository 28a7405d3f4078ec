// memory/fragmentation: reserved memory that is free, yet can be neither used nor given back, because a live tensor shares its segment.
#pragma once

#include "rules/rule.h"

namespace faultline {

void judge_fragmentation(Case& subject, std::vector<Finding>& findings, std::vector<NotJudged>& not_judged);

}  // namespace faultline
