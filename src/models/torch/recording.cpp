#include "models/torch/recording.h"

#include <algorithm>
#include <map>

#include "base/hash.h"

namespace faultline {
namespace {

constexpr std::uint64_t kReservationWhenUnknown = 1ull << 42;

struct StartBlock {
  std::uint64_t address = 0;
  std::uint64_t requested_bytes = 0;
  // what the end state or a later allocation shows to have been set aside; 0: neither does
  std::uint64_t recorded_bytes = 0;
  AllocationId id;
  std::uint32_t arena = 0;
  bool pending = false;
};

struct StartSegment {
  std::vector<ByteRange> runs;  // one for a plain segment, the mapped ranges of an expandable one
  StreamId stream;
  std::uint32_t arena = 0;
  bool pool_known = false;
  bool expandable = false;
  bool is_small = false;
};

class StartState {
 public:
  StartState(const TorchRecording& recording, TorchAllocator& allocator, std::vector<BlockIndex>& block_of)
      : recording_(recording), allocator_(allocator), block_of_(block_of) {}

  void build() {
    collect();
    if (segments_.empty() && blocks_.empty()) return;
    for (std::size_t at = 0; at < recording_.trace.final_segments.size(); ++at) {
      const FinalSegment& segment = recording_.trace.final_segments[at];
      if (segment.device == recording_.device) finals_.emplace(segment.address, at);
    }
    find_recorded_sizes();
    std::sort(blocks_.begin(), blocks_.end(),
              [](const StartBlock& a, const StartBlock& b) { return a.address < b.address; });
    std::sort(segments_.begin(), segments_.end(),
              [](const StartSegment& a, const StartSegment& b) { return a.runs[0] < b.runs[0]; });
    for (StartSegment& segment : segments_) classify(segment);
    join_reservations();
    learn_sizes();
    for (const StartSegment& segment : segments_) place(segment);
    for (const StartBlock& block : blocks_) {
      if (block_of_[block.id.index()] != kNoIndex) continue;
      block_of_[block.id.index()] = allocator_.force(block.address, allocator_.round(block.requested_bytes), block.id);
    }
    for (const StartBlock& block : blocks_) {
      if (block.pending) allocator_.request_free(block_of_[block.id.index()]);
    }
  }

 private:
  void collect() {
    const Trace& trace = recording_.trace;
    HashMap<std::uint32_t, std::size_t> by_id;
    const std::size_t end = std::min<std::size_t>(trace.preexisting_count, trace.events.size());
    for (std::size_t at = 0; at < end; ++at) {
      const Event& event = trace.events[at];
      const HeapRole role = recording_.role(event);
      if (role == HeapRole::kElsewhere) continue;
      if (role == HeapRole::kDriver) {
        if ((event.kind != EventKind::kAlloc && event.kind != EventKind::kMap) || event.size_bytes == 0 ||
            event.size_bytes > kTorchLargestRequest || event.address > ~0ull - event.size_bytes) {
          continue;
        }
        StartSegment& segment = segments_.emplace_back();
        segment.runs.push_back(ByteRange::of(event.address, event.size_bytes));
        segment.stream = event.stream;
        segment.expandable = event.kind == EventKind::kMap;
      } else if (event.kind == EventKind::kAlloc && recording_.valid(event.allocation) &&
                 event.size_bytes <= kTorchLargestRequest) {
        if (!by_id.try_emplace(event.allocation.value, blocks_.size()).second) continue;
        blocks_.push_back({event.address, event.size_bytes, 0, event.allocation, recording_.arena(event), false});
      } else if (event.kind == EventKind::kFree && event.phase() == FreePhase::kRequested && !event.has(kFailed)) {
        if (const auto found = by_id.find(event.allocation.value); found != by_id.end())
          blocks_[found->second].pending = true;
      }
    }
  }

  void find_recorded_sizes() {
    const Trace& trace = recording_.trace;
    if (trace.final_blocks.empty()) return;
    HashMap<std::uint64_t, std::uint64_t> sizes;
    for (const FinalBlock& block : trace.final_blocks) {
      if (block.state != FinalBlock::State::kFree) sizes.emplace(block.address, block.size_bytes);
    }
    std::vector<bool> freed(recording_.largest_allocation + std::size_t{1});
    for (std::size_t at = trace.preexisting_count; at < trace.events.size(); ++at) {
      const Event& event = trace.events[at];
      if (event.returns_to_heap() && recording_.valid(event.allocation)) freed[event.allocation.index()] = true;
    }
    for (StartBlock& block : blocks_) {
      const auto found = sizes.find(block.address);
      if (found != sizes.end() && !freed[block.id.index()]) block.recorded_bytes = found->second;
    }
  }

  // In a plain large segment a block may hold up to 1 MiB more than was asked for. What follows it is one free block up to the next live one, and
  // the first allocation made there starts exactly at its beginning: that shows where the block before it ends.
  void learn_sizes() {
    struct Gap {
      std::uint64_t end;
      std::size_t block;
    };
    std::map<std::uint64_t, Gap> gaps;
    HashMap<std::uint32_t, std::uint64_t> gap_of;  // by allocation
    for (const StartSegment& segment : segments_) {
      if (segment.is_small || segment.expandable) continue;
      const auto [first, last] = blocks_in(segment.runs[0]);
      for (std::size_t at = first; at < last; ++at) {
        const std::uint64_t begin = blocks_[at].address + allocator_.round(blocks_[at].requested_bytes);
        const std::uint64_t end = at + 1 < last ? blocks_[at + 1].address : segment.runs[0].end;
        if (blocks_[at].recorded_bytes != 0 || begin >= end || end - begin <= kTorchSmallRequest) continue;
        if (gaps.emplace(begin, Gap{end, at}).second) gap_of.emplace(blocks_[at].id.value, begin);
      }
    }
    const std::vector<Event>& events = recording_.trace.events;
    for (std::size_t at = recording_.trace.preexisting_count; at < events.size() && !gaps.empty(); ++at) {
      const Event& event = events[at];
      const HeapRole role = recording_.role(event);
      if (role == HeapRole::kTorch && event.returns_to_heap()) {
        if (const auto found = gap_of.find(event.allocation.value); found != gap_of.end()) gaps.erase(found->second);
      } else if (event.kind == EventKind::kAlloc && role == HeapRole::kTorch) {
        auto gap = gaps.upper_bound(event.address);
        if (gap == gaps.begin()) continue;
        --gap;
        if (event.address >= gap->second.end) continue;
        if (event.address - gap->first <= kTorchSmallRequest) {
          StartBlock& block = blocks_[gap->second.block];
          block.recorded_bytes = event.address - block.address;
        }
        gaps.erase(gap);
      }
    }
  }

  std::pair<std::size_t, std::size_t> blocks_in(ByteRange range) const {
    const auto by_address = [](const StartBlock& block, std::uint64_t address) { return block.address < address; };
    const auto first = std::lower_bound(blocks_.begin(), blocks_.end(), range.begin, by_address);
    const auto last = std::lower_bound(first, blocks_.end(), range.end, by_address);
    return {static_cast<std::size_t>(first - blocks_.begin()), static_cast<std::size_t>(last - blocks_.begin())};
  }

  void classify(StartSegment& segment) {
    const ByteRange range = segment.runs[0];
    const auto [first, last] = blocks_in(range);
    bool any_large = false;
    for (std::size_t at = first; at < last; ++at) {
      if (blocks_[at].arena != 0) {
        segment.arena = blocks_[at].arena;
        segment.pool_known = true;
      }
      any_large = any_large || allocator_.round(blocks_[at].requested_bytes) > kTorchSmallRequest;
    }
    segment.is_small = segment.expandable ? !any_large && (first != last || range.size() % (20 * kMiB) != 0)
                                          : range.size() <= kTorchSmallSegment;
    const auto above = finals_.lower_bound(range.end);
    if (above == finals_.begin()) return;
    const FinalSegment& final_segment = recording_.trace.final_segments[std::prev(above)->second];
    const ByteRange final_range = ByteRange::of(final_segment.address, final_segment.size_bytes);
    if (segment.expandable ? !final_range.overlaps(range) : final_range != range) return;
    segment.is_small = final_segment.is_small;
    if (final_segment.heap.index() < recording_.arenas.size() &&
        recording_.roles[final_segment.heap.index()] == HeapRole::kTorch) {
      segment.arena = recording_.arenas[final_segment.heap.index()];
      segment.pool_known = true;
    }
  }

  void join_reservations() {
    std::vector<StartSegment> joined;
    const std::uint64_t reach = reservation_bytes(recording_);
    for (StartSegment& segment : segments_) {
      if (!joined.empty() && segment.expandable) {
        StartSegment& last = joined.back();
        const bool same_list = last.expandable && last.stream == segment.stream && last.arena == segment.arena &&
                               last.is_small == segment.is_small;
        if (same_list && segment.runs[0].begin >= last.runs.back().end &&
            segment.runs[0].end - last.runs[0].begin <= reach) {
          if (segment.runs[0].begin == last.runs.back().end)
            last.runs.back().end = segment.runs[0].end;
          else
            last.runs.push_back(segment.runs[0]);
          continue;
        }
      }
      joined.push_back(std::move(segment));
    }
    segments_ = std::move(joined);
  }

  void place(const StartSegment& start) {
    const ListIndex list = allocator_.list_for(start.arena, start.is_small, start.stream);
    ByteRange whole = start.runs[0];
    if (start.expandable)
      whole.end = std::max(start.runs.back().end, start.runs[0].begin + reservation_bytes(recording_));
    const SegmentIndex segment =
        allocator_.add_segment(list, whole, start.expandable ? allocator_.handle_bytes(start.is_small) : 0);
    if (segment == kNoIndex) return;
    allocator_.segment(segment).pool_known = start.pool_known;
    BlockIndex last = kNoIndex;
    std::uint64_t cursor = whole.begin;
    const auto fill = [&](std::uint64_t up_to, TorchBlock::State state) {
      if (up_to > cursor) last = allocator_.append_block(segment, last, up_to - cursor, state, {});
      cursor = std::max(cursor, up_to);
    };
    for (const ByteRange& run : start.runs) {
      fill(run.begin, TorchBlock::State::kUnmapped);
      const auto [first, end] = blocks_in(run);
      for (std::size_t at = first; at < end; ++at) {
        const StartBlock& block = blocks_[at];
        if (block.address < cursor) continue;  // overlaps the one before: stays outside
        const std::uint64_t room = (at + 1 < end ? blocks_[at + 1].address : run.end) - block.address;
        const std::uint64_t size_bytes =
            block_bytes(start, block, room, end - first == 1 && block.address == run.begin);
        if (size_bytes == 0 || size_bytes > room) continue;
        fill(block.address, TorchBlock::State::kFree);
        last = allocator_.append_block(segment, last, size_bytes, TorchBlock::State::kAllocated, block.id);
        block_of_[block.id.index()] = last;
        cursor += size_bytes;
      }
      fill(run.end, TorchBlock::State::kFree);
    }
    fill(whole.end, TorchBlock::State::kUnmapped);
  }

  // What was set aside for a block whose allocation was not recorded: rounding, plus the rest that was not worth splitting off.
  std::uint64_t block_bytes(const StartSegment& segment, const StartBlock& block, std::uint64_t room,
                            bool alone) const {
    if (block.recorded_bytes != 0) return block.recorded_bytes;
    const std::uint64_t rounded = allocator_.round(block.requested_bytes);
    if (rounded > room) return 0;
    if (segment.is_small || segment.expandable) return room - rounded < kTorchSmallestBlock ? room : rounded;
    if (room - rounded <= kTorchSmallRequest) return room;
    return alone && allocator_.keeps_whole(rounded) ? room : rounded;
  }

  const TorchRecording& recording_;
  TorchAllocator& allocator_;
  std::vector<BlockIndex>& block_of_;
  std::vector<StartSegment> segments_;
  std::vector<StartBlock> blocks_;
  std::map<std::uint64_t, std::size_t> finals_;  // the end state's segments by address
};

}  // namespace

std::optional<TorchRecording> torch_recording(const Trace& trace, std::uint16_t device) {
  TorchRecording recording{trace, device, {}, {}, {}, {}, 0, {}, 0};
  recording.roles.assign(trace.heaps.size(), HeapRole::kElsewhere);
  recording.arenas.assign(trace.heaps.size(), 0);
  bool found = false;
  for (std::size_t heap = 0; heap < trace.heaps.size(); ++heap) {
    if (trace.heaps[heap].device != device || trace.heaps[heap].kind != HeapKind::kTorchCaching ||
        trace.heaps[heap].is_private())
      continue;
    recording.roles[heap] = HeapRole::kTorch;
    if (!found) recording.heap_of_arena.emplace_back(static_cast<std::uint16_t>(heap));
    found = true;
  }
  for (std::size_t heap = 0; heap < trace.heaps.size(); ++heap) {
    const Heap& here = trace.heaps[heap];
    if (here.device != device) continue;
    if (here.kind == HeapKind::kDriver) {
      if (here.below.index() != heap) continue;  // what others took from the driver beside the framework
      recording.roles[heap] = HeapRole::kDriver;
      recording.driver_heap = HeapId(static_cast<std::uint16_t>(heap));
    } else if (here.kind == HeapKind::kTorchCaching && here.is_private()) {
      // no default pool: its first private one stands in
      if (!found) recording.heap_of_arena.emplace_back(static_cast<std::uint16_t>(heap));
      found = true;
      recording.roles[heap] = HeapRole::kTorch;
      recording.arenas[heap] = static_cast<std::uint32_t>(recording.heap_of_arena.size());
      recording.heap_of_arena.emplace_back(static_cast<std::uint16_t>(heap));
    }
  }
  if (!found) return std::nullopt;
  for (const Device& known : trace.devices) {
    if (known.index != device) continue;
    recording.capacity_bytes = known.capacity_bytes;
    if (known.allowed_bytes != 0) recording.limit_bytes = known.allowed_bytes;
  }
  recording.largest_allocation =
      static_cast<std::uint32_t>(std::min<std::size_t>(trace.allocation_count, trace.events.size()));
  return recording;
}

std::uint64_t reservation_bytes(std::uint64_t capacity_bytes) {
  if (capacity_bytes == 0 || capacity_bytes > kReservationWhenUnknown) return kReservationWhenUnknown;
  return capacity_bytes + capacity_bytes / 8;
}

void build_start_state(const TorchRecording& recording, TorchAllocator& allocator, std::vector<BlockIndex>& block_of) {
  StartState(recording, allocator, block_of).build();
}

}  // namespace faultline
