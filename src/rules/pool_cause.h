// cause.h for a pool with a limit of its own.
#pragma once

#include "rules/cause.h"

namespace faultline {

// shortage.pool is there.
CauseVerdict judge_pool(const Shortage& shortage);

}  // namespace faultline
