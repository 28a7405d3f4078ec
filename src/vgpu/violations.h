// The way out for accesses that were caught: to the recorder, where one stands before this driver.
#pragma once

#include "driver/caught_access.h"

extern "C" {
__attribute__((visibility("default"))) void faultline_set_violation_sink(faultline::driver::ViolationSink sink);
__attribute__((visibility("default"))) void faultline_report_violation(const faultline::driver::CaughtAccess& access);
}
