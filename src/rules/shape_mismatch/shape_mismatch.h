// tensor/shape-mismatch: an operation refused its operands because of their shapes, types or devices; which, from where, and what would fit.
#pragma once

#include <vector>

#include "rules/rule.h"

namespace faultline {

void judge_shape_mismatch(Case& subject, std::vector<Finding>& findings, std::vector<NotJudged>& not_judged);

}  // namespace faultline
