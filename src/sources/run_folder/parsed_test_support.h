// A trace from a few lines of the text form, for the tests of run folders.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "trace/text.h"

namespace faultline {

inline Trace parsed(const std::string& lines) {
  Result<Trace> trace = parse_trace_text("faultline-trace-text 1\n" + lines);
  EXPECT_TRUE(trace.ok()) << trace.error().message();
  return trace.ok() ? std::move(*trace) : Trace{};
}

}  // namespace faultline
