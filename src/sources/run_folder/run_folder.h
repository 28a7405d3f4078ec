// What a run left, read back: one trace for each process that used a GPU, with everything in it that the folder knows of that process.
//
//   process-PID.faultline        what happened at the driver's boundary
//   process-PID.json             versions, and the exception that ended it          → properties "process.…"
//   torch-PID-REASON.pickle      PyTorch's history: oom, error or exit              → joined (join.h)
//   core-PID…                    GPU core dumps                                     → faults in their place (place_faults.h)
//   command.json                 the command and how it ended                       → properties "run.…"
//   again/                       a second run with the dump armed (run --again)     → its dump's faults (second_run.h), properties "again.…"
//
// A part that cannot be read is counted in the trace's `lost`; without the driver's record PyTorch's history stands alone.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "trace/trace.h"

namespace faultline {

// Any file of a process that a run recorded is in it.
bool holds_run(const std::string& folder);

// The process that failed first comes first; those that touched no GPU memory only where there is no other.
Result<std::vector<Trace>> load_run(const std::string& folder);

}  // namespace faultline
