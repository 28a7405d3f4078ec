// What a dry run needs and leaves: Faultline's own parts on this machine, the request that is put into the run's folder (the program's processes are pointed to
// it by FAULTLINE_PLAN), and what they leave there. Reruns under a change have folders of the same kind inside the first.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "models/gpus.h"
#include "plan/dry_run.h"
#include "process/op_memory.h"

namespace faultline::process {

struct PlanParts {
  std::string python;   // the folder that holds the package `faultline`
  std::string library;  // libfaultline_dryrun.so
};
// Beside the executable (a build tree, an installed package), else below FAULTLINE_HOME.
Result<PlanParts> find_plan_parts();

struct DryRunRequest {
  std::vector<ShownGpu> gpus;  // as the program is told
  bool overcommit = false;
  bool real = false;
  std::uint64_t steps = 0;
  std::uint64_t seconds = 0;
  std::uint64_t at_least_seconds = 0;  // it is not stopped for its steps before
  // after its steps it goes on behind a loop over its data, if that is quick
  bool go_on = false;
  std::map<std::string, std::string> changes;  // remedies by name
  std::optional<std::pair<std::string, std::uint64_t>> vary;
  std::uint64_t ranks = 0;    // that the program has; 0: as it says itself
  std::uint64_t refused = 0;  // with overcommit: so many requests fail before the GPU grows
  std::vector<OperationMemory> op_memory;
  std::map<std::string, std::vector<Edit>> edits = {};  // of changes and of vary: see Attempt
  std::uint64_t many = 1;
};
// `confined`: the program's changes to files are kept aside, so it may make them.
Status write_request(const std::string& folder, const PlanParts& parts, const DryRunRequest& request, bool confined);

// Of all processes, the one the plan is about first: the one that ran out of memory, else the one that needs most.
std::vector<ProcessSummary> read_summaries(const std::string& folder);

// As a process of the program tells.
ImportTrouble read_import_trouble(const std::string& folder);

}  // namespace faultline::process
