// memory/cache-churn: torch.cuda.empty_cache() again and again at one line, where what it gives back is taken again before the next call.
//
// A call is told by its stack: the segments it returns carry PyTorch's own function empty_cache as the innermost Python frame. What PyTorch
// returns by itself, at a retry or when it collects garbage, carries the request that caused it. A call that returned nothing leaves no mark.
#pragma once

#include "rules/rule.h"

namespace faultline {

void judge_cache_churn(Case& subject, std::vector<Finding>& findings, std::vector<NotJudged>& not_judged);

}  // namespace faultline
