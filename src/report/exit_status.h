// The exit status that a report asks for: 0 clean, 1 findings, or a plan that does not fit, 2 a planned program that failed by itself for a reason no
// finding tells, 4 a plan that holds as far as it was run and no further, which nobody asked for. Notes are good to know and never change it.
#pragma once

#include "report/report.h"

namespace faultline {

inline constexpr int kHoldsInPart = 4;
int exit_status(const Report& report);

}  // namespace faultline
