// A plan's verdict in a few words, for whatever tells it in one line: the SUMMARY, a page's head, a service's note.
#pragma once

#include <string>

#include "plan/plan.h"

namespace faultline {

std::string summary_of(const Plan& plan);  // "does not fit, 3.75 GiB too little"

}  // namespace faultline
