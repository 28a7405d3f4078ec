// Numbers of the command as remedies: a smaller batch, shorter sequences, fewer tokens.
#pragma once

#include <string>
#include <vector>

#include "plan/dry_run.h"

namespace faultline {

// Where the batch is a number of the command: smaller ones, as remedies for combinations.
std::vector<Offer> batches_in_command(const std::vector<std::string>& command, const ProcessSummary& as_run);

// Where the length of the tokens that the program looks up is one, or where nothing trains how many it generates: shorter ones.
std::vector<Offer> lengths_in_command(const std::vector<std::string>& command, const ProcessSummary& as_run);

}  // namespace faultline
