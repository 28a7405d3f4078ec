// cause.h for a pool with a limit of its own.
#pragma once

#include "rules/cause.h"

namespace faultline {

// shortage.pool is there.
CauseVerdict judge_pool(const Shortage& shortage);

// Whether a region that the driver refused is the last that a pool asks it for: the next, nine tenths of it, would be less than the request.
bool is_last_refusal(ByteInterval refused, ByteInterval requested);

}  // namespace faultline
