// What every trace is brought down to before anything looks at it, wherever it came from.
//
// Facts and rules go through a trace once for each of its devices, and a trace may list sixty thousand. No machine has more than a few dozen: of more
// the busiest are kept, and the trace says so. Of counters that it brings along, as many as anybody would read.
#pragma once

#include <cstddef>

#include "trace/trace.h"

namespace faultline {

inline constexpr std::size_t kMostDevices = 64;
inline constexpr std::size_t kMostCounters = 256;
inline constexpr std::size_t kMostHeaps = 0xffff;  // a HeapId has sixteen bits, and the last number stands for none

void keep_in_bounds(Trace& trace);

}  // namespace faultline
