// The text form of a trace: for tests, bug reports, and eyes. One line for each record and event; docs/trace-format.md has the grammar.
//
//   faultline-trace-text 1
//   stack fwd = train.py:12 main > model.py:30 forward
//   alloc #w 4MiB at train.py:5 build
//   step 1
//   alloc #a 1MiB stack=fwd
//   free #a
//
// Written by hand, what is left out gets a sensible value: a device 0, a driver heap and a torch heap above it, times a microsecond apart, a
// Free's place and size from its Alloc. trace_to_text writes "faultline-trace-text 1 exact", where nothing is added, and
// parse_trace_text(trace_to_text(t)) equals t, ids included. What parse_trace_text returns passes check_trace.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "trace/trace.h"

namespace faultline {

// Errors begin with "line N: ".
Result<Trace> parse_trace_text(std::string_view text);

// The trace must pass check_trace.
std::string trace_to_text(const Trace& trace);

bool looks_like_trace_text(std::string_view first_bytes);

}  // namespace faultline
