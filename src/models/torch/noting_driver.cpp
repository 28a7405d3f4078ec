#include "models/torch/noting_driver.h"

namespace faultline {

Event NotingDriver::driver_event(EventKind kind, ByteRange range, const SegmentOwner& owner) const {
  Event event;
  event.time_ns = cause_.time_ns;
  event.stack = cause_.stack;
  event.thread = cause_.thread;
  event.kind = kind;
  event.address = range.begin;
  event.size_bytes = range.size();
  event.stream = owner.stream;
  event.device = device_;
  event.heap = driver_heap_;
  event.set(kAddressKnown);
  return event;
}

std::optional<ByteRange> NotingDriver::take(std::uint64_t size_bytes, const SegmentOwner& owner) {
  const std::optional<ByteRange> range = below_.take(size_bytes, owner);
  if (!range) return range;
  Event event = driver_event(EventKind::kAlloc, *range, owner);
  event.allocation = new_id();
  segment_ids_[range->begin] = event.allocation;
  note(event);
  return range;
}

void NotingDriver::give_back(ByteRange segment, const SegmentOwner& owner) {
  below_.give_back(segment, owner);
  Event event = driver_event(EventKind::kFree, segment, owner);
  if (const auto known = segment_ids_.find(segment.begin); known != segment_ids_.end()) {
    event.allocation = known->second;
    segment_ids_.erase(known);
  }
  note(event);
}

bool NotingDriver::map(ByteRange range, const SegmentOwner& owner) {
  if (!below_.map(range, owner)) return false;
  note(driver_event(EventKind::kMap, range, owner));
  return true;
}

void NotingDriver::unmap(ByteRange range, const SegmentOwner& owner) {
  below_.unmap(range, owner);
  note(driver_event(EventKind::kUnmap, range, owner));
}

}  // namespace faultline
