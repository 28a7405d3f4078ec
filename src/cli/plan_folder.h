// What a dry run needs and leaves: Faultline's own parts on this machine, the run folder, the request that is put into it, and the summaries that
// the program's processes leave there.
//
//   FOLDER/plan.json               the request; the program's processes are pointed to it by FAULTLINE_PLAN
//   FOLDER/trace-PID.faultline     one for each process that imported PyTorch
//   FOLDER/summary-PID.json        likewise, written when the process ended in order
//
// Reruns under a change have folders of the same kind inside the first.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "cli/private_files.h"
#include "models/gpus.h"
#include "plan/dry_run.h"

namespace faultline::cli {

struct PlanParts {
  std::string python;   // the folder that holds the package `faultline`
  std::string library;  // libfaultline_dryrun.so
};
// Beside the executable (a build tree, an installed package), else below FAULTLINE_HOME.
Result<PlanParts> find_plan_parts();

// Makes the folder, for its owner alone: `wanted`, or a new one named after the program and the time. The absolute path.
Result<std::string> make_run_folder(const std::string& wanted, const std::vector<std::string>& command);

struct DryRunRequest {
  Gpu gpu;
  std::string gpu_name;  // as the program is told
  bool overcommit = false;
  bool real = false;
  std::uint64_t steps = 0;
  std::uint64_t seconds = 0;
  std::map<std::string, std::string> changes;  // autocast → float16, checkpoint → true, foreach → false, set_to_none → true
  std::optional<std::pair<std::string, std::uint64_t>> vary;
};
// `confined`: the program's changes to files are kept aside, so it may make them.
Status write_request(const std::string& folder, const PlanParts& parts, const DryRunRequest& request, bool confined);

// Of all processes, the one the plan is about first: the one that ran out of memory, else the one that needs most.
std::vector<ProcessSummary> read_summaries(const std::string& folder);

// command.json: what was run, how it ended, and what else the verb knows of it.
struct CommandRecord {
  std::string verb;
  std::vector<std::string> command;
  std::string started;
  int exit_status = 0;
  double seconds = 0;
  std::map<std::string, std::string> choices;
  std::optional<std::vector<std::string>> left_out;  // what could not be recorded; none for verbs that record nothing
};
Status write_command(const std::string& folder, const CommandRecord& record);
std::string shown_folder(const std::string& folder);  // from here, where it lies below

std::string utc_now();  // 2026-01-31T12:00:00Z
Result<std::string> read_text_file(const std::string& path);

}  // namespace faultline::cli
