// How PyTorch's caching allocator takes memory from the driver: the sizes that a request, its segment and a page of an expandable segment have.
#pragma once

#include <cstdint>

#include "base/byte_interval.h"
#include "base/units.h"
#include "trace/trace.h"

namespace faultline {

inline constexpr std::uint64_t kTorchSmallestBlock = 512;
inline constexpr std::uint64_t kTorchSmallRequest = kMiB;      // the largest request of the small pool
inline constexpr std::uint64_t kTorchSmallSegment = 2 * kMiB;  // also what larger segments are a multiple of
inline constexpr std::uint64_t kTorchOwnSegment = 10 * kMiB;   // from here on a request gets a segment of its own size
// what those between share, unless large_segment_size_mb says otherwise
inline constexpr std::uint64_t kTorchLargeSegment = 20 * kMiB;

struct TorchSegmentSizes {
  std::uint64_t small_bytes = kTorchSmallSegment;
  std::uint64_t large_bytes = kTorchLargeSegment;

  // What the driver is asked for so that a block of this size can be had.
  std::uint64_t segment_bytes(std::uint64_t block_bytes) const;
  // The blocks that a segment of this size may have been asked for.
  ByteInterval block_behind(ByteInterval segment) const;
};

// Those in force in a recording; the defaults where it does not carry its settings.
TorchSegmentSizes torch_segment_sizes(const Trace& trace);

}  // namespace faultline
