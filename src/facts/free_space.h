// The address picture at one moment: segments, the live blocks in them, and the free space those blocks pin.
//
// A free piece inside a segment that also holds a live block cannot go back to the driver; an empty segment can, and the allocator returns it
// by itself before it reports out of memory. Only the first kind is fragmentation.
#pragma once

#include <cstdint>
#include <vector>

#include "facts/lifetimes.h"
#include "trace/trace.h"

namespace faultline {

struct LiveBlock {
  std::uint64_t address = 0;
  std::uint64_t held_bytes = 0;
  AllocationId id;
  bool pending = false;  // let go, waiting for other streams
};

struct SegmentPicture {
  std::uint64_t address = 0;
  std::uint64_t size_bytes = 0;
  std::uint64_t live_bytes = 0;
  std::uint64_t pinned_free_bytes = 0;   // free, and cannot be given back because of the live blocks
  std::uint64_t largest_free_bytes = 0;  // longest free piece
  StreamId stream;
  bool expandable = false;
  std::uint32_t first_live = 0;  // into FreeSpace::live
  std::uint32_t live_count = 0;
  std::uint64_t free_bytes() const { return size_bytes - live_bytes; }
};

struct FreeSpace {
  std::vector<SegmentPicture> segments;  // by address
  std::vector<LiveBlock> live;           // by address
  std::uint64_t reserved_bytes = 0;
  std::uint64_t live_bytes = 0;
  std::uint64_t pinned_free_bytes = 0;
  std::uint64_t returnable_bytes = 0;  // free and returnable
  std::uint64_t largest_free_bytes = 0;
};

// How much physical memory is mapped behind expandable segments at a time, in the pool of small requests and in that of large ones.
struct HandleSizes {
  std::uint64_t small_bytes = 0;
  std::uint64_t large_bytes = 0;
};

// The state right after `event` on `device`. Without a framework there are no segments to look into, and the picture is empty.
FreeSpace picture_free_space(const Trace& trace, const Lifetimes& lifetimes, std::uint16_t device, std::uint32_t event,
                             HandleSizes handles);

}  // namespace faultline
