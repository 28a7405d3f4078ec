// Does the program take what it finds free, on purpose, as servers do that fill the GPU with blocks for later?
#pragma once

#include "plan/make_plan.h"

namespace faultline {

// Of a program that fits and has asked how much memory is free: it is run once more and told of less. Where it then takes less, nearly a full GPU is what it wants and no tight fit.
// No GPU was named, and the program asks how much memory there is: does what it takes follow from the answer, which was made up?
void learn_sizing(const PlanQuestion& question, const DryRunResult& first, bool may_again, const Reruns& reruns,
                  PlannedRun& run);

void learn_filling(const PlanQuestion& question, const DryRunResult& first, const Reruns& reruns, PlannedRun& run);

}  // namespace faultline
