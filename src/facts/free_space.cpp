#include "facts/free_space.h"

#include <algorithm>

#include "base/byte_range.h"
#include "facts/heap_uses.h"
#include "facts/mapped_ranges.h"

namespace faultline {
namespace {

// Free bytes of [begin, end) that lie in handles which also hold live bytes. The pool is told by the size: a run of the large one is a multiple of its handle.
std::uint64_t stuck_in_handles(const SegmentPicture& segment, ByteRange gap, HandleSizes handles) {
  const std::uint64_t handle =
      segment.size_bytes % handles.large_bytes == 0 ? handles.large_bytes : handles.small_bytes;
  const std::uint64_t first_whole = segment.address + (gap.begin - segment.address + handle - 1) / handle * handle;
  const std::uint64_t last_whole = segment.address + (gap.end - segment.address) / handle * handle;
  return first_whole < last_whole ? gap.size() - (last_whole - first_whole) : gap.size();
}

}  // namespace

FreeSpace picture_free_space(const Trace& trace, const Lifetimes& lifetimes, std::uint16_t device, std::uint32_t event,
                             HandleSizes handles) {
  FreeSpace picture;
  const HeapUses uses(trace);
  const std::vector<MappedRange> mapped = mapped_at(
      trace, event, [&](const Event& at) { return at.device == device && uses.of(at.heap) == HeapUse::kSegments; });
  lifetimes.for_each([&](AllocationId id, const Lifetime& life, const Event& birth) {
    if (!life.taken_at(event) || birth.device != device || !birth.has(kAddressKnown)) return;
    const HeapUse use = uses.of(birth.heap);
    if (use == HeapUse::kSegments) {
      SegmentPicture segment;
      segment.address = birth.address;
      segment.size_bytes = birth.size_bytes;
      segment.stream = birth.stream;
      picture.segments.push_back(segment);
    } else if (use == HeapUse::kProgram && uses.has_framework(device)) {
      picture.live.push_back({birth.address, lifetimes.held_bytes(id), id, life.released <= event});
    }
  });
  for (auto run = mapped.begin(); run != mapped.end();) {  // neighbouring ranges are one run
    SegmentPicture segment;
    segment.address = run->range.begin;
    segment.stream = run->by->stream;
    segment.expandable = true;
    std::uint64_t end = run->range.end;
    for (++run; run != mapped.end() && run->range.begin == end && run->by->stream == segment.stream; ++run)
      end = run->range.end;
    segment.size_bytes = end - segment.address;
    picture.segments.push_back(segment);
  }
  std::sort(picture.segments.begin(), picture.segments.end(),
            [](const auto& a, const auto& b) { return a.address < b.address; });
  std::sort(picture.live.begin(), picture.live.end(),
            [](const auto& a, const auto& b) { return a.address < b.address; });

  std::size_t next = 0;
  for (SegmentPicture& segment : picture.segments) {
    const std::uint64_t end = segment.address + segment.size_bytes;
    while (next < picture.live.size() && picture.live[next].address < segment.address) ++next;
    segment.first_live = static_cast<std::uint32_t>(next);
    std::uint64_t free_from = segment.address;
    const auto gap = [&](std::uint64_t until) {
      if (until <= free_from) return;
      segment.largest_free_bytes = std::max(segment.largest_free_bytes, until - free_from);
      segment.pinned_free_bytes +=
          segment.expandable ? stuck_in_handles(segment, {free_from, until}, handles) : until - free_from;
    };
    while (next < picture.live.size() && picture.live[next].address < end) {
      const LiveBlock& block = picture.live[next++];
      gap(block.address);
      const std::uint64_t block_end = std::min(end, block.address + block.held_bytes);
      segment.live_bytes += block_end - std::min(block_end, std::max(free_from, block.address));
      free_from = std::max(free_from, block_end);
      ++segment.live_count;
    }
    gap(end);
    if (segment.live_count == 0) segment.pinned_free_bytes = 0;
    picture.reserved_bytes += segment.size_bytes;
    picture.live_bytes += segment.live_bytes;
    picture.pinned_free_bytes += segment.pinned_free_bytes;
    picture.returnable_bytes += segment.free_bytes() - segment.pinned_free_bytes;
    picture.largest_free_bytes = std::max(picture.largest_free_bytes, segment.largest_free_bytes);
  }
  return picture;
}

}  // namespace faultline
