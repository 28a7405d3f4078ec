// What the tests of facts have in common: traces from text, recordings from the fixtures, and ids by the order of their lines.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "facts/facts.h"
#include "sources/source.h"
#include "trace/text.h"

namespace faultline {

inline Trace traced(std::string_view lines) {
  Result<Trace> trace = parse_trace_text("faultline-trace-text 1\n" + std::string(lines));
  EXPECT_TRUE(trace.ok()) << trace.error().message();
  return trace.ok() ? std::move(*trace) : Trace{};
}

inline Trace recording(const std::string& name) {
  Result<Trace> trace = load(FAULTLINE_FIXTURES "/torch/" + name + ".pickle.xz");
  EXPECT_TRUE(trace.ok()) << trace.error().message(name);
  return trace.ok() ? std::move(*trace) : Trace{};
}

// "train.py:12 main", or "" for no frame.
inline std::string place(const Trace& trace, StackId stack) {
  if (stack.value == 0) return {};
  const Frame& frame = trace.stacks.frame(stack);
  return std::string(trace.strings.at(frame.file)) + ":" + std::to_string(frame.line) + " " +
         std::string(trace.strings.at(frame.function));
}

}  // namespace faultline
