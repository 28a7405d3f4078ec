// Calls of the driver's interface that it refused, as the trace tells them: the event flagged kFailed, and the driver's words behind it.
#pragma once

#include <cstdint>
#include <string>

#include "facts/facts.h"

namespace faultline {

struct Refusal {
  std::string function;  // "cuMemFree_v2"; empty: the recording does not say
  std::string error;     // "CUDA_ERROR_INVALID_VALUE"
  // The arguments were wrong. Other errors are of another making: an earlier fault's echo, a driver that is shutting down, a stream being captured.
  bool blames_arguments() const;
};
Refusal refusal_of(const Trace& trace, std::uint32_t event);

// Whoever asked, where it is no part of the program itself; empty: the program.
std::string asking_library(const Facts& facts, StackId stack);

}  // namespace faultline
