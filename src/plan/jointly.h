// Of a program that infers or generates: for each of several batches the largest length that fits, each confirmed by running the program with both numbers.
#pragma once

#include "plan/dry_run.h"
#include "plan/plan.h"

namespace faultline {

// Nothing is added where the program trains, or where it has not both numbers, in its command or in its own files.
void add_jointly(const Reruns& reruns, const ProcessSummary& as_run, Plan& plan);

}  // namespace faultline
