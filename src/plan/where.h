// The smallest GPUs of the catalogue on which a program fits as it is, and with what was tried.
#pragma once

#include "plan/plan.h"

namespace faultline {

void add_where(Plan& plan);

}  // namespace faultline
