// api/bad-copy: a copy or a fill that reaches beyond its memory, or that the driver refused.
//
// Judged against what the driver handed out, not against a framework's blocks inside it: a copy that leaves its tensor but not its segment may be meant.
#pragma once

#include "rules/rule.h"

namespace faultline {

void judge_bad_copy(Case& subject, std::vector<Finding>& findings, std::vector<NotJudged>& not_judged);

}  // namespace faultline
