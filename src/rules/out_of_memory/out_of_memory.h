// memory/out-of-memory: a request that failed, and why.
//
// Three inputs tell of one: a recording of a framework's allocator (here), a request that went straight to the driver (driver_request.h), and a message
// (message.h), which is judged where nothing recorded the failure itself. All three put their numbers into a Shortage, and cause.h decides.
#pragma once

#include "rules/rule.h"

namespace faultline {

void judge_out_of_memory(Case& subject, std::vector<Finding>& findings, std::vector<NotJudged>& not_judged);

}  // namespace faultline
