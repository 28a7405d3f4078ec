// memory/out-of-memory: a request that failed, and why.
//
// The allocator reports failure only after it has given back everything it could, so what is reserved then is live or pinned. Six things
// can be behind it, told apart by arithmetic on the moment of failure:
//   own-limit          the driver had room for the segment that was needed: the program limited itself
//   fragmented         without the pinned free pieces the request would fit the device, or what the program's limit is known to allow
//   idle-cache         whole free segments were still cached (no one could return them, for example during graph capture)
//   other-process      most of the device was taken before the program asked for anything (only where the recording measured that)
//   outside-framework  the device's memory is held by something the recording does not see (only with a known capacity)
//   exhausted          none of these: live memory and the request are simply too much
// A request that went straight to the driver is judged in driver_request.h.
#pragma once

#include "rules/rule.h"

namespace faultline {

void judge_out_of_memory(Case& subject, std::vector<Finding>& findings, std::vector<NotJudged>& not_judged);

}  // namespace faultline
