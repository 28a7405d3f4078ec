// Allocated and reserved bytes over time, per device: the curve, its peaks, and the failed requests.
#pragma once

#include <cstdint>
#include <vector>

#include "facts/heap_uses.h"
#include "facts/lifetimes.h"
#include "trace/trace.h"

namespace faultline {

struct UsageMoment {
  std::uint32_t event = 0;  // state right after this event
  std::int64_t time_ns = 0;
  // held by the program, in the framework's heaps; without a framework what it took from the driver
  std::uint64_t allocated = 0;
  std::uint64_t pending = 0;   // let go, but not yet reusable (other streams)
  std::uint64_t reserved = 0;  // taken from the driver by framework heaps; without a framework as allocated
  std::uint64_t outside = 0;   // taken from the driver beside the framework
};

struct DeviceUsage {
  std::uint16_t device = 0;
  UsageMoment peak_allocated;
  UsageMoment peak_reserved;
  std::uint64_t peak_outside_bytes = 0;
  UsageMoment end;
  // at each AllocFailed that its asker did not get over: the first ones, and the last
  std::vector<UsageMoment> failures;
  std::uint64_t failure_count = 0;
  std::vector<UsageMoment> curve;  // at most kCurvePoints, the peaks among them
  static constexpr std::size_t kCurvePoints = 256;
  static constexpr std::size_t kMaxFailures = 64;
};

// A dry run on a GPU that grows: the request that failed is served next, and the program goes on.
bool is_served_after_all(const Trace& trace, std::uint32_t failure);

std::vector<DeviceUsage> measure_usage(const Trace& trace, const Lifetimes& lifetimes, const HeapUses& uses);

}  // namespace faultline
