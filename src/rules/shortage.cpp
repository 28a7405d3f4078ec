#include "rules/shortage.h"

#include <algorithm>

#include "base/hash.h"
#include "facts/outside.h"
#include "models/bfc/settings.h"
#include "models/torch/segment_sizes.h"
#include "trace/framework.h"

namespace faultline {

bool is_driver_request(const Trace& trace, const Event& failed) {
  switch (trace.heaps[failed.heap.index()].kind) {
    case HeapKind::kTorchCaching:
    case HeapKind::kBfc:
    case HeapKind::kOther: return false;
    default: return true;
  }
}

namespace {

// "TensorFlow's pool GPU_0_bfc", "the pool GPU_0_bfc".
std::string pool_words(const Case& subject, const Heap& heap) {
  const Framework owner = pools_framework(subject.trace());
  return (owner == Framework::kNone ? "the" : std::string(words_of(owner)) + "'s") + " pool" +
         (heap.name.empty() ? "" : " " + heap.name);
}

// What the model found out about the limit of the heap that refused; a heap without one has none.
std::optional<ByteInterval> pool_limit(const Case& subject, std::size_t slot, const Event& failed) {
  const ReplayResult* proof = subject.proof(slot);
  if (proof == nullptr) return std::nullopt;
  for (const PoolLimit& limit : proof->pool_limits) {
    if (limit.heap == failed.heap) return limit.bytes;
  }
  return std::nullopt;
}

// What both say, where they agree.
ByteInterval within(ByteInterval bytes, const std::optional<ByteInterval>& told) {
  if (!told || told->min > bytes.max || told->max < bytes.min) return bytes;
  return {std::max(told->min, bytes.min), std::min(told->max, bytes.max)};
}

// A pool of TensorFlow's or JAX's at the moment of a failure; a map of which lines are missing knows its parts between bounds.
Shortage pool_shortage(const Case& subject, std::size_t slot, const UsageMoment& moment) {
  const Trace& trace = subject.trace();
  const Lifetimes& lifetimes = subject.facts().lifetimes;
  const Event& event = trace.events[moment.event];
  const Heap& heap = trace.heaps[event.heap.index()];
  const DumpedPool* const known = subject.statements().pool_of(heap.name);
  const DumpedPool stated = known == nullptr ? DumpedPool() : *known;
  Shortage shortage;
  PoolShortage parts;
  parts.name = heap.name;
  parts.words = pool_words(subject, heap);
  parts.memory = memory_of(heap.name);
  std::uint64_t live = 0, requested = 0, reserved = 0, largest = 0;
  HashSet<std::uint64_t> regions;
  lifetimes.for_each([&](AllocationId id, const Lifetime& life, const Event& birth) {
    if (!life.alive_at(moment.event)) return;
    if (birth.heap == event.heap) {
      live += lifetimes.held_bytes(id);
      requested += std::min(bfc_rounded(birth.size_bytes), lifetimes.held_bytes(id));
    } else if (birth.heap == heap.below) {
      reserved += birth.size_bytes;
      regions.insert(birth.address);
    }
  });
  for (const SegmentPicture& segment : subject.free_space(event.device, moment.event).segments) {
    if (regions.contains(segment.address)) largest = std::max(largest, segment.largest_free_bytes);
  }
  // without lines of regions a line that is missing looks as the end of one
  if (!stated.is_cut() || stated.growth) parts.region_count = regions.size();
  // a map that has less in use than the pool's own total is a remnant, and so is one of which nobody knows what is missing
  parts.has_map =
      !regions.empty() && !stated.is_open && (!stated.in_use || live + stated.unplaced.max >= stated.in_use->min);
  const ByteInterval asked = stated.request.value_or(ByteInterval::exactly(event.size_bytes));
  parts.knows_request = asked.max != 0;
  shortage.requested = shortage.segment = {bfc_rounded(asked.min), bfc_rounded(asked.max)};
  parts.refused = stated.refused_region;
  parts.base_limit = stated.base_limit;
  if (!parts.has_map) parts.bar = stated.bar;
  parts.limit = stated.limit;
  // what a recording tells of it; of a map alone that would rest on the failure that it is to explain
  if (!parts.limit && !subject.statements().message_only) parts.limit = pool_limit(subject, slot, event);
  if (parts.has_map) {
    const std::uint64_t unread = std::min(stated.unread_bytes, live);
    const std::uint64_t idle = reserved - std::min(live, reserved), unseen = unread + stated.unplaced.max;
    shortage.live = within(ByteInterval{live - unread, live + stated.unplaced.max}, stated.in_use);
    shortage.reserved = ByteInterval::exactly(reserved) + stated.unplaced;
    shortage.idle = ByteInterval{idle, idle + unseen};
    if (unseen != 0) {
      shortage.idle = within(*shortage.idle, *shortage.reserved - *shortage.live);
      shortage.idle = within(*shortage.idle, stated.free_by_bins);
    }
    // neither larger than what is free, nor free without being in the lines that are missing
    shortage.largest_piece =
        ByteInterval{std::min(largest, shortage.idle->max), std::min(shortage.idle->max, largest + unseen)};
    if (unseen != 0) shortage.largest_piece = within(*shortage.largest_piece, stated.largest_by_bins);
    if (stated.knows_requests && unseen == 0)
      parts.slack = ByteInterval::exactly(live - std::min(live, requested));
    else
      parts.slack = stated.slack;
  } else {
    shortage.live = stated.in_use;
    shortage.reserved = stated.taken;
    if (stated.in_use && stated.taken) shortage.idle = *stated.taken - *stated.in_use;
    if (stated.free_by_bins) shortage.idle = stated.free_by_bins;
    parts.slack = stated.slack;
    shortage.largest_piece = stated.largest_free ? stated.largest_free : stated.largest_by_bins;
  }
  if (parts.limit && shortage.reserved) parts.left = *parts.limit - *shortage.reserved;
  if (const auto& printed = stated.available;
      printed && (!parts.left || printed->max - printed->min < parts.left->max - parts.left->min))
    parts.left = printed;
  // what is left is taken in whole units
  if (parts.left)
    parts.left = ByteInterval{parts.left->min / kBfcUnit * kBfcUnit, parts.left->max / kBfcUnit * kBfcUnit};
  shortage.holder = "the program";
  shortage.pool = std::move(parts);
  return shortage;
}

}  // namespace

// The moment of failure in the allocator's own numbers.
Shortage shortage_of(const Case& subject, std::size_t slot, const UsageMoment& moment) {
  const Trace& trace = subject.trace();
  const Device& device = trace.devices[slot];
  const Event& event = trace.events[moment.event];
  if (trace.heaps[event.heap.index()].kind == HeapKind::kBfc) return pool_shortage(subject, slot, moment);
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
