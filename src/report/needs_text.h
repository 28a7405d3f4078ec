// How much a plan needs, in words: the number or the two it lies between, and what that is made of.
#pragma once

#include <string>

#include "plan/plan.h"

namespace faultline {

std::string needed_text(const Plan& plan);    // "20.90 GiB to 22.00 GiB" where a part is estimated and that shows
std::string estimate_text(const Plan& plan);  // what makes an interval of it
std::string missing_text(const Plan& plan);   // what is missing in any case: "at least 2.00 GiB"
std::string taken_text(const Plan& plan);     // what PyTorch keeps for reuse
std::string more_than_taken_text(const Plan& plan);
std::string most_text(const Plan& plan);  // sizes that depend on values
std::string pool_text(const Plan& plan);  // of JAX or TensorFlow
std::string unit_text(const Plan& plan);  // what growth is counted in: "optimizer step"

}  // namespace faultline
