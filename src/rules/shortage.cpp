#include "rules/shortage.h"

#include <algorithm>

#include "facts/outside.h"
#include "models/torch/segment_sizes.h"

namespace faultline {

bool is_driver_request(const Trace& trace, const Event& failed) {
  switch (trace.heaps[failed.heap.index()].kind) {
    case HeapKind::kTorchCaching:
    case HeapKind::kBfc:
    case HeapKind::kOther: return false;
    default: return true;
  }
}

// The moment of failure in the allocator's own numbers.
Shortage shortage_of(const Case& subject, std::size_t slot, const UsageMoment& moment) {
  const Trace& trace = subject.trace();
  const Device& device = trace.devices[slot];
  const Event& event = trace.events[moment.event];
  const std::uint64_t live = moment.allocated + moment.pending;
  const FreeSpace space = subject.free_space(event.device, moment.event);
  Shortage shortage;
  shortage.requested = ByteInterval::exactly(event.size_bytes);
  shortage.segment = ByteInterval::exactly(torch_segment_sizes(trace).segment_bytes(event.size_bytes));
  shortage.live = ByteInterval::exactly(live);
  if (moment.reserved >= live) {  // less: segments were taken before the recording began, or it does not show them
    shortage.reserved = ByteInterval::exactly(moment.reserved);
    shortage.idle = *shortage.reserved - *shortage.live;
  }
  shortage.returnable = ByteInterval::exactly(space.returnable_bytes);
  shortage.largest_piece = ByteInterval::exactly(space.largest_free_bytes);
  for (const SegmentPicture& segment : space.segments) {
    if (segment.stream != event.stream)
      shortage.other_streams = shortage.other_streams + ByteInterval::exactly(segment.free_bytes());
  }
  if (event.has(kHasDeviceFree)) shortage.free = ByteInterval::exactly(event.address);
  if (device.capacity_bytes != 0) shortage.capacity = ByteInterval::exactly(device.capacity_bytes);
  if (device.allowed_bytes != 0) shortage.allowed = ByteInterval::exactly(device.allowed_bytes);
  const UsageMoment& fullest = subject.facts().usage[slot].peak_reserved;
  shortage.allowed_so_far = ByteInterval::exactly(
      std::max(device.allowed_bytes, fullest.event <= moment.event ? fullest.reserved : moment.reserved));
  if (const auto unasked = unasked_memory(trace, device))
    shortage.before_start = ByteInterval::exactly(unasked->before_start);
  if (subject.statements().placed_by_model && is_served_after_all(trace, moment.event))
    shortage.whole_live = ByteInterval::exactly(subject.facts().usage[slot].peak_allocated.allocated);
  return shortage;
}

bool stopped_by_limit(const Shortage& shortage) {
  return shortage.free && shortage.free->max >= shortage.segment.max + kDriverMarginBytes;
}

std::uint64_t segment_room(const Shortage& shortage, const DeviceUsage& usage, const UsageMoment& moment) {
  if (!stopped_by_limit(shortage)) return moment.reserved + (shortage.free ? shortage.free->max : 0);
  return std::max(usage.peak_reserved.event <= moment.event ? usage.peak_reserved.reserved : moment.reserved,
                  shortage.allowed ? shortage.allowed->max : 0);
}

}  // namespace faultline
