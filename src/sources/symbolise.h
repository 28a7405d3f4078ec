// Native frames made readable after the run.
//
// A recorder notes a native frame as the module's path and an offset ("+0x1a2b", in the file's own addresses) and looks nothing up while the program runs.
// symbolise replaces such frames by the function's name and, where the module has line tables, the source file and line. Module files are read once each,
// and only their symbols and line tables; the trace is all that changes, and stays as it was where a module tells nothing.
#pragma once

#include "trace/trace.h"

namespace faultline {

// Frames without line tables keep the module's path as their file and line 0. Counted in trace.lost: "symbolise.missing_modules" (no such file, or none that
// could be read), "symbolise.changed_modules" (newer than the trace: its addresses may mean something else).
void symbolise(Trace& trace);

}  // namespace faultline
