// Runs the user's program under a dry run: in the foreground as the user started it, or quietly beside others.
//
// Every run begins from the same files, the same standard input and the same environment: what a run writes is kept aside and goes with it
// (confine/confined_program.h), and what the first one read from its standard input is given to the others again. A quiet run writes to log.txt in its
// folder. The environment is the user's, plus what brings the dry run in.
#pragma once

#include <string>
#include <vector>

#include "process/child_process.h"
#include "process/dry_run_files.h"
#include "process/given_input.h"
#include "process/run_folder.h"

namespace faultline::process {

// What a program may do to the machine while it is planned.
struct Limits {
  bool allow_writes = false;         // files are not kept aside
  bool offline = false;              // connections to other machines are refused
  std::uint64_t grace_seconds = 25;  // after its time, to end by itself: a dry run gives a program's own clean-up 20
};

struct DryRunJob {
  std::vector<std::string> command;
  DryRunRequest request;
  std::string folder;
  Limits limits;
  std::string top_folder;    // the run folder: `folder`, or what it lies in
  bool folder_stays = true;  // it may be told of
};

// The Error is about starting it: the program was not found, is not executable.
Result<DryRunResult> run_in_foreground(const PlanParts& parts, const DryRunJob& job, const GivenInput& input,
                                       Output output);

// The first job again, otherwise. Several at once, at most as many as the machine has cores; the answers stand in the order of the attempts, and one that
// could not be started has no processes.
std::vector<DryRunResult> run_quietly(const PlanParts& parts, const DryRunJob& first,
                                      const std::vector<Attempt>& attempts, const GivenInput& input);

}  // namespace faultline::process
