// tensor/broadcast-blowup: shapes that were meant to match broadcast against each other, (N,1) against (N,), and give N×N.
#pragma once

#include <vector>

#include "rules/rule.h"

namespace faultline {

void judge_broadcast_blowup(Case& subject, std::vector<Finding>& findings, std::vector<NotJudged>& not_judged);

}  // namespace faultline
