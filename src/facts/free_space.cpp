#include "facts/free_space.h"

#include <algorithm>
#include <map>

#include "base/byte_range.h"
#include "facts/heap_uses.h"

namespace faultline {
namespace {

struct Mapped {
  std::uint64_t end = 0;
  StreamId stream;
};
using Mappings = std::map<std::uint64_t, Mapped>;

void unmap(Mappings& mapped, ByteRange range) {
  auto at = mapped.upper_bound(range.begin);
  if (at != mapped.begin()) --at;
  while (at != mapped.end() && at->first < range.end) {
    const ByteRange held{at->first, at->second.end};
    if (!held.overlaps(range)) {
      ++at;
      continue;
    }
    const StreamId stream = at->second.stream;
    at = mapped.erase(at);
    if (held.begin < range.begin) mapped[held.begin] = {range.begin, stream};
    if (range.end < held.end) at = mapped.insert_or_assign(range.end, Mapped{held.end, stream}).first;
  }
}

// Free bytes of [begin, end) that lie in handles which also hold live bytes. The pool is told by the size: a run of the large one is a multiple of its handle.
std::uint64_t stuck_in_handles(const SegmentPicture& segment, ByteRange gap, HandleSizes handles) {
  const std::uint64_t handle = segment.size_bytes % handles.large_bytes == 0 ? handles.large_bytes : handles.small_bytes;
  const std::uint64_t first_whole = segment.address + (gap.begin - segment.address + handle - 1) / handle * handle;
  const std::uint64_t last_whole = segment.address + (gap.end - segment.address) / handle * handle;
  return first_whole < last_whole ? gap.size() - (last_whole - first_whole) : gap.size();
}

}  // namespace

FreeSpace picture_free_space(const Trace& trace, const Lifetimes& lifetimes, std::uint16_t device, std::uint32_t event, HandleSizes handles) {
  FreeSpace picture;
  Mappings mapped;
  const HeapUses uses(trace);
  for (std::uint32_t index = 0; index <= event && index < trace.events.size(); ++index) {
    const Event& at = trace.events[index];
    if (at.device != device || (at.kind != EventKind::kMap && at.kind != EventKind::kUnmap) || uses.of(at.heap) != HeapUse::kSegments) continue;
    const bool fits = at.size_bytes <= ~at.address;
    if (at.kind == EventKind::kMap && fits) {
      unmap(mapped, ByteRange::of(at.address, at.size_bytes));
      mapped[at.address] = {at.address + at.size_bytes, at.stream};
    }
    if (at.kind == EventKind::kUnmap && fits) unmap(mapped, ByteRange::of(at.address, at.size_bytes));
  }
  for (std::uint32_t number = 1; number <= trace.allocation_count; ++number) {
    const AllocationId id(number);
    const Lifetime& life = lifetimes.of(id);
    if (life.born == kNever || life.born > event || life.returned <= event) continue;
    const Event& birth = lifetimes.birth(id);
    if (birth.device != device || !birth.has(kAddressKnown)) continue;
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
  }
  for (auto run = mapped.begin(); run != mapped.end();) {  // neighbouring ranges are one run
    SegmentPicture segment;
    segment.address = run->first;
    segment.stream = run->second.stream;
    segment.expandable = true;
    std::uint64_t end = run->second.end;
    for (++run; run != mapped.end() && run->first == end && run->second.stream == segment.stream; ++run) end = run->second.end;
    segment.size_bytes = end - segment.address;
    picture.segments.push_back(segment);
  }
  std::sort(picture.segments.begin(), picture.segments.end(), [](const auto& a, const auto& b) { return a.address < b.address; });
  std::sort(picture.live.begin(), picture.live.end(), [](const auto& a, const auto& b) { return a.address < b.address; });

  std::size_t next = 0;
  for (SegmentPicture& segment : picture.segments) {
    const std::uint64_t end = segment.address + segment.size_bytes;
    while (next < picture.live.size() && picture.live[next].address < segment.address) ++next;
    segment.first_live = static_cast<std::uint32_t>(next);
    std::uint64_t free_from = segment.address;
    const auto gap = [&](std::uint64_t until) {
      if (until <= free_from) return;
      segment.largest_free_bytes = std::max(segment.largest_free_bytes, until - free_from);
      segment.pinned_free_bytes += segment.expandable ? stuck_in_handles(segment, {free_from, until}, handles) : until - free_from;
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
