// Which part of a process's life its recording covers, where that is not all of it.
//
// A recording has limits (trace/keeper.h): when half of the room is used, launches, copies and waits are left out, and when all of it is, everything. Recording may also end because
// of trouble of its own. What came after was not seen, so nothing is said of it: rules that look at calls say so, and so does the report.
#pragma once

#include <string>

#include "trace/trace.h"

namespace faultline {

// Properties of the trace.
// launches, copies and waits after it are not in the trace
inline constexpr const char* kCallsUntil = "capture.calls_until_ns";
inline constexpr const char* kRecordedUntil = "capture.recorded_until_ns";  // nothing after it is
inline constexpr const char* kEndedBecause = "capture.ended_because";       // a clause: when and why

struct RecordedPart {
  bool all_calls = true;
  bool all = true;
  std::string because;
};
inline RecordedPart recorded_part(const Trace& trace) {
  RecordedPart part;
  part.all = !trace.properties.contains(kRecordedUntil);
  part.all_calls = part.all && !trace.properties.contains(kCallsUntil);
  if (const auto why = trace.properties.find(kEndedBecause); why != trace.properties.end()) part.because = why->second;
  return part;
}

}  // namespace faultline
