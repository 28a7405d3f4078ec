// access/out-of-bounds, access/use-after-free, access/uninitialized, access/misaligned: accesses that were caught (Violation events), with what is wrong with each.
//
// Nothing is weighed here: who caught the access knows what it is. The same line of a kernel makes one finding for each kind; an access of a kind that this version does
// not know is access/illegal-address.
#pragma once

#include "rules/rule.h"

namespace faultline {

void judge_violations(Case& subject, std::vector<Finding>& findings, std::vector<NotJudged>& not_judged);

}  // namespace faultline
