// How the virtual driver tells the recorder of an access that it caught.
//
// The recorder stands before a driver that it knows only as a library. Where that library has a function of the name below, the recorder gives it its sink when it opens it. The
// sink is called by whatever thread caught the access, with none of the driver's locks held: it asks the driver questions. It keeps nothing of what it is given.
#pragma once

#include <cstdint>

#include "trace/calls.h"

struct CUstream_st;  // of cuda.h, which programs and Faultline include in different ways

namespace faultline::driver {

struct CaughtAccess {
  ViolationKind kind = ViolationKind::kOther;
  AccessKind access = AccessKind::kRead;
  std::uint16_t device = 0;
  std::uint64_t address = 0;
  std::uint64_t size_bytes = 0;
  // of the allocation that it belongs to or is nearest, as the program was given it; 0: none
  std::uint64_t memory_start = 0;
  CUstream_st* stream = nullptr;  // that the kernel runs on
  const char* kernel = "";
  const char* function = "";  // the device function, where it is not the kernel itself
  const char* file = "";
  KernelPlace place;  // all but its names
};

using ViolationSink = void (*)(const CaughtAccess&);
inline constexpr const char* kSetViolationSink = "faultline_set_violation_sink";  // void(ViolationSink)
// void(const CaughtAccess&): also the door for tests
inline constexpr const char* kReportViolation = "faultline_report_violation";

}  // namespace faultline::driver
