// What a second run's GPU core dump says (run --again), put into the trace of the first run, which had the fault but no dump.
//
// The same program faults at the same place, but its memory lies elsewhere. The fault is put behind the first run's launch of that kernel, and its addresses
// are moved by as much as the pointer that lies nearest to them moved between the two launches: the distance from what the kernel was given is kept. An
// address for which no such pointer is known is dropped.
#pragma once

#include "trace/trace.h"

namespace faultline {

void place_second_run(Trace& trace, const Trace& core);

}  // namespace faultline
