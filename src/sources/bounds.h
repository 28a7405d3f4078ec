// What every trace is brought down to before anything looks at it, wherever it came from.
//
// Facts and rules go through a trace once for each of its devices, and a trace may list sixty thousand. No machine has more than a few dozen: of more
// the busiest are kept, and the trace says so. Of counters that it brings along, as many as anybody would read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "trace/trace.h"

namespace faultline {

inline constexpr std::size_t kMostDevices = 64;
inline constexpr std::size_t kMostCounters = 256;
inline constexpr std::size_t kMostHeaps = 0xffff;  // a HeapId has sixteen bits, and the last number stands for none

// More than any device has, by far: a size beyond it is damage, or somebody's invention, and no fact.
inline constexpr std::uint64_t kMostDeviceBytes = std::uint64_t{1} << 44;

void keep_in_bounds(Trace& trace);

// Refuses a trace in which memory was taken that no device has. A dry run is asked what a program would take, and may be told anything; so may a request
// that failed, and the length of a copy.
Status check_sizes(const Trace& trace);
Error absurd_size(std::string_view whose, std::uint64_t size_bytes);

}  // namespace faultline
