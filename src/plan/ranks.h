// On how many GPUs a program fits whose ranks share its parameters, gradients or states among them: it is run again with other numbers of ranks.
#pragma once

#include "plan/dry_run.h"
#include "plan/plan.h"

namespace faultline {

// Where it does not fit, more are tried, and each is one of the changes; where it fits, fewer, and a note says the fewest. Nothing for a program that
// has one rank, or does not share.
void add_ranks(const Reruns& reruns, const ProcessSummary& as_run, Plan& plan);

}  // namespace faultline
