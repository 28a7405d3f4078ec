// What a leak means for the program that was planned: when it fills which GPU, and how bad that is.
#pragma once

#include <vector>

#include "plan/plan.h"

namespace faultline {

// A program that ran to its end, or whose own loop ends before the GPU is full, grows no further. What is likely a leak is then a note, where it is small beside the GPU; one that is
// proved is a warning, which says at which step which GPU would be full: the named one, else the smallest that have room for the program.
void weigh_leaks(const Plan& plan, std::vector<Finding>& findings);

}  // namespace faultline
