#include "vgpu/violations.h"

#include <atomic>

namespace {
std::atomic<faultline::driver::ViolationSink> the_sink{nullptr};
}  // namespace

void faultline_set_violation_sink(faultline::driver::ViolationSink sink) { the_sink.store(sink); }

void faultline_report_violation(const faultline::driver::CaughtAccess& access) {
  if (const auto sink = the_sink.load()) sink(access);
}
