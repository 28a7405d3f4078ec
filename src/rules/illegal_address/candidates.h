// Which kernels may have been running when the driver reported an error.
#pragma once

#include <cstdint>
#include <vector>

#include "trace/trace.h"

namespace faultline {

struct Candidate {
  LaunchId launch;
  std::uint32_t event = 0;  // the last of them
  std::uint64_t times = 0;
};

struct Candidates {
  std::vector<Candidate> kernels;  // by kernel and stack, the last launched first; at most kMost
  std::uint64_t launches = 0;      // all of them
  bool complete = true;            // false: the walk was cut short, or something else than a kernel was under way too
  static constexpr std::size_t kMost = 16;
};

// Launches on the event's device since the host last waited for their streams, before `event`.
Candidates launched_since_sync(const Trace& trace, std::uint32_t event);

}  // namespace faultline
