// The search for the largest batch that fits: the program is run again with other values of one number, in its command line or in its source.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plan/dry_run.h"
#include "plan/plan.h"

namespace faultline {

// Where the command line itself carries a number: "--batch-size 8", "--batch-size=8", "batch_size=8", "train.batch_size=8".
struct InCommand {
  std::size_t word = 0;
  std::string head;  // what stands before the number in that word
  std::string name;
  std::uint64_t value = 0;
};
// name empty: the usual names of a batch size.
std::optional<InCommand> find_in_command(const std::vector<std::string>& command, const std::string& name);

// name empty: the usual names of a batch size are looked for, and it is said where none is found.
// as_run: the program as it is, which knows the numbers of its own files. Where it trains the gradients of one batch are kept while the next is computed, so that
// what fits does so with gradient accumulation, too.
void add_search(const Reruns& reruns, const std::string& name, const ProcessSummary& as_run, Plan& plan);

}  // namespace faultline
