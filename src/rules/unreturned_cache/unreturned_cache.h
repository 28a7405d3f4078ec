// memory/unreturned-cache: whole segments that were used early, lie idle since, and are still taken from the device.
//
// The program itself loses nothing (PyTorch returns them before it would fail), but other processes and other libraries do.
#pragma once

#include "rules/rule.h"

namespace faultline {

void judge_unreturned_cache(Case& subject, std::vector<Finding>& findings, std::vector<NotJudged>& not_judged);

}  // namespace faultline
