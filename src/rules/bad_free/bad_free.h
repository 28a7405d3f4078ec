// api/bad-free: memory given back that cannot be: freed before, a pointer into the middle, the wrong function for it, or nobody's at all.
#pragma once

#include "rules/rule.h"

namespace faultline {

void judge_bad_free(Case& subject, std::vector<Finding>& findings, std::vector<NotJudged>& not_judged);

}  // namespace faultline
