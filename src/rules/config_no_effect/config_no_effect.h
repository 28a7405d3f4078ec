// config/no-effect: allocator settings that the program asks for and that do nothing.
//
// Some cannot do anything by construction (a garbage collection threshold without a memory limit, a rounding limit without a split limit);
// others made no difference to this recording, which a replay without them shows.
#pragma once

#include "rules/rule.h"

namespace faultline {

void judge_config_no_effect(Case& subject, std::vector<Finding>& findings, std::vector<NotJudged>& not_judged);

}  // namespace faultline
