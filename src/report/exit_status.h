// The exit status that a report asks for: 0 clean, 1 findings, or a plan that does not fit, 2 a planned program that failed by itself for a reason no
// finding tells, 4 a plan that holds as far as it was run and no further, which nobody asked for, or
// that fits by one end of what is estimated and not by the other. Notes are good to know and never change it.
#pragma once

#include "report/report.h"

namespace faultline {

inline constexpr int kHoldsInPart = 4;
int exit_status(const Report& report);

}  // namespace faultline
