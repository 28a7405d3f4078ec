// Accesses that the virtual driver caught, as events of the trace.
#pragma once

#include "driver/caught_access.h"

namespace faultline::capture {

void record_violation(const driver::CaughtAccess& access);

}  // namespace faultline::capture
