// The search for the largest batch that fits: the program is run again with other values of one number, in its command line or in its source.
#pragma once

#include <string>

#include "plan/dry_run.h"
#include "plan/plan.h"

namespace faultline {

// name empty: the usual names of a batch size are looked for, and it is said where none is found.
void add_search(const Reruns& reruns, const std::string& name, Plan& plan);

}  // namespace faultline
