// Puts what GPU core dumps say where it belongs: a fault right behind the launch of the kernel that caused it.
//
// A dump names the kernel, its grid and block, and the parameters the device had. The launch is the last one before the driver reported the error that
// agrees with all of them; where the recording's launches have fewer of these, with those. A fault whose launch is not found comes last.
#pragma once

#include "trace/trace.h"

namespace faultline {

void place_faults(Trace& trace, const Trace& core);

}  // namespace faultline
