// Several profiles of one process's arrays, each of a moment, put together as one trace over time.
//
// A profile tells how many arrays of each line are alive and their bytes, not which. What is more than at the look before was made between the two; of what is less the youngest went,
// so that what the trace keeps to its end is what was there at every look since. What came and went between two looks was not seen.
#pragma once

#include <string>
#include <vector>

#include "trace/trace.h"

namespace faultline {

struct ArrayLook {
  std::int64_t time_ns = 0;
  Trace trace;  // of a profile: what is alive at that moment
};

// Each look ends with an operation of the name kLookMark (trace/marks.h). `looks` come in order of time.
Trace join_looks(std::vector<ArrayLook> looks);

}  // namespace faultline
