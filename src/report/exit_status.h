// The exit status that a report asks for: 0 clean, 1 findings, or a plan that does not fit, 2 a planned program that failed by itself for a reason no
// finding tells. Notes are good to know and never change it.
#pragma once

#include "report/report.h"

namespace faultline {

int exit_status(const Report& report);

}  // namespace faultline
