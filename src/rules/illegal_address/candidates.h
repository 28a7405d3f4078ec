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
  std::vector<Candidate> kernels;     // by kernel and stack, the last launched first; at most kMost
  std::vector<std::uint32_t> events;  // all of their launches, the last first
  bool complete = true;               // false: the walk was cut short
  bool returned_by_launch = false;    // the one that is left is the launch that returned the error itself
  std::uint64_t launches() const { return events.size(); }
  static constexpr std::size_t kMost = 256;
};

// Launches on the event's device since the host last waited for them, before `event`, the first report of the error. Where every launch was waited for
// (CUDA_LAUNCH_BLOCKING), or where nothing else was under way, a launch that returned the error is the one itself.
Candidates launched_since_sync(const Trace& trace, std::uint32_t event, bool waits_for_launches = false);

}  // namespace faultline
