// What run or plan left, read back: one part for each process that used a GPU, with everything in it that the folder knows of that process.
// docs/run-folder.md lists the files, layout.h has their names.
//
//   process-PID.faultline        what happened at the driver's boundary, or in a dry run
//   process-PID.json             versions, and the exception that ended it          → properties "process.…"
//   torch-PID-REASON.pickle      PyTorch's history: oom, error or exit              → joined (join.h)
//   core-PID…                    GPU core dumps                                     → faults in their place (place_faults.h)
//   notes-PID.txt                what the recorder had to say                       → notes
//   command.json                 the command and how it ended                       → properties "run.…", what was left out
//   report.json                  of a plan: what it found out                       → the plan, and which trace it is about
//   again/                       a second run with the dump armed (run --again)     → its dump's faults (second_run.h), properties "again.…"
//
// A part that cannot be read is counted; without the driver's record PyTorch's history stands alone.
#pragma once

#include <string>

#include "sources/input.h"

namespace faultline {

// A file of a process that was recorded is in it.
bool holds_processes(const std::string& folder);
// Likewise, or what run and plan themselves write.
bool holds_run(const std::string& folder);

// The process that failed first comes first; those that touched no GPU memory only where there is no other.
Result<Input> read_run(const std::string& folder);

// What the program's processes had to say while they were recorded, each sentence once; also where none of them was recorded.
std::vector<std::string> notes_in(const std::string& folder);

// The builds of frameworks without a GPU's code that were loaded: "PyTorch 2.13.0+cpu"; such a program never calls the driver.
std::vector<std::string> cpu_builds_in(const std::string& folder);
// What such a run is to be told, and what to type instead; empty: no such build was seen.
std::string cpu_build_words(const std::string& folder);

}  // namespace faultline
