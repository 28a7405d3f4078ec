// What of the program would have to be otherwise for it to fit: remedies, each confirmed by running the program with it, the least intrusive first.
//
// A dry run offers what applies to the program (plan/offer.h). Each is tried alone; where none is enough, combinations are searched: all are ordered by what
// they ask of the user, what cannot fit is left out by a sum (parameters, gradients and optimizer state that stay, plus the context), and the least intrusive
// that should fit is run next. Each run corrects the guesses for those that have it in them. Only a run says that something fits.
#pragma once

#include <functional>

#include "plan/dry_run.h"
#include "plan/plan.h"

namespace faultline {

// as_run: what the program left without them. search: for the largest batch that fits, asked for after what changes no number; where a graph that no backward pass comes to
// fills the GPU, that is the answer, and neither the batch nor anything else is looked for (unless there is all the time in the world).
void add_remedies(const Reruns& reruns, const ProcessSummary& as_run, Plan& plan, const std::function<void()>& search);

// What grows as it did fills the GPU later with a setting, and fits until then.
void limit_settings_by_growth(Plan& plan);

}  // namespace faultline
