// What came of the limits that were set for a plan (plan/limits.h), in words.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plan/plan.h"

namespace faultline {

// ", 1.20 GiB over the budget"; empty where no limit is broken.
std::string broken_limits_text(const Plan& plan);
// For the page: each limit that was set and what came of it.
std::vector<std::pair<std::string_view, std::string>> limit_rows(const Plan& plan);

}  // namespace faultline
