#include "models/bfc/proof.h"

#include <algorithm>
#include <deque>

#include "fmt/format.h"

namespace faultline {
namespace {

constexpr std::size_t kMismatchesKept = 16;

bool follows_by_refusals(std::uint64_t from, std::uint64_t size_bytes) {
  while (from > size_bytes) from = bfc_less(from);
  return from == size_bytes;
}

class BfcProof {
 public:
  BfcProof(const BfcRecording& recording, std::vector<std::uint64_t>* held_bytes)
      : recording_(recording), events_(recording.trace.events), held_bytes_(held_bytes) {
    for (const BfcRecording::Pool& pool : recording.pools) {
      findings_.pools.push_back(told_by_start(pool));
      pools_.emplace_back(findings_.pools.back().settings);
    }
    pending_.resize(recording.trace.heaps.size());
    told_by_region_.resize(pools_.size());
    place_of_.resize(recording.largest_allocation + std::size_t{1});
  }

  BfcProofResult run() {
    build_start_state(recording_, pools_, place_of_);
    const std::size_t first = std::min<std::size_t>(recording_.trace.preexisting_count, events_.size());
    for (std::size_t at = 0; at < first; ++at) note_held(events_[at]);
    for (std::size_t at = first; at < events_.size(); ++at) {
      const Event& event = events_[at];
      if (recording_.from_driver(event)) {
        if (event.kind == EventKind::kAlloc || event.returns_to_heap()) pending_[event.heap.index()].push_back(at);
        continue;
      }
      const std::uint32_t pool = recording_.pool_of(event);
      if (pool == kNoPool) continue;
      if (event.kind == EventKind::kAlloc)
        on_alloc(at, pool);
      else if (event.kind == EventKind::kAllocFailed)
        on_failed(at, pool);
      else if (event.returns_to_heap())
        on_free(event);
      else
        continue;
      ++replay_.events;
    }
    for (std::uint32_t pool = 0; pool < pools_.size(); ++pool) take_unexplained(pool, events_.size());
    finish();
    return {std::move(replay_), std::move(findings_)};
  }

 private:
  // The driver as it was: it gives the regions that the recording shows next, and refuses where there are none.
  class RecordedDriver : public BfcDriver {
   public:
    RecordedDriver(BfcProof& proof, std::uint32_t pool) : proof_(proof), pool_(pool) {}
    std::optional<ByteRange> take(std::uint64_t size_bytes) override { return proof_.region(pool_, size_bytes); }
    void give_back(ByteRange region) override { proof_.given_back(pool_, region); }

   private:
    BfcProof& proof_;
    std::uint32_t pool_;
  };

  // What is stated of a pool, and what its first region shows: growth asks for 2 MiB, doubled until the request fits.
  BfcFindings::Pool told_by_start(const BfcRecording::Pool& pool) const {
    BfcFindings::Pool found;
    if (pool.stated.limit) {
      found.settings.limit_bytes = pool.stated.limit->max;
      found.limit_is_known = pool.stated.limit->min == pool.stated.limit->max;
    }
    const Event* region = nullptr;
    const Event* request = nullptr;
    bool gives_back = false;
    for (const Event& event : events_) {
      const bool is_alloc = event.kind == EventKind::kAlloc;
      if (event.heap == pool.driver_heap && recording_.from_driver(event)) {
        if (is_alloc && region == nullptr) region = &event;
        gives_back |= event.returns_to_heap();
      } else if (is_alloc && event.heap == pool.heap && region != nullptr && request == nullptr) {
        request = &event;
      }
    }
    found.settings.growth = pool.stated.growth.value_or(true);
    if (request != nullptr && recording_.trace.preexisting_count == 0) {
      std::uint64_t grown = kBfcFirstRegion;
      while (grown < std::min(request->size_bytes, kBfcLargestRequest)) grown *= 2;
      if (!pool.stated.growth) found.settings.growth = region->size_bytes == grown;
      const bool within = !pool.stated.limit || (region->size_bytes + kBfcUnit > pool.stated.limit->min &&
                                                 region->size_bytes <= pool.stated.limit->max);
      if (!found.settings.growth && !found.limit_is_known && within) {
        found.settings.limit_bytes = std::min(region->size_bytes, kBfcNoLimit);
        found.limit_is_known = true;
      }
    }
    found.settings.garbage_collection = pool.stated.garbage_collection.value_or(gives_back);
    found.collects = pool.stated.garbage_collection;
    if (gives_back) found.collects = true;
    return found;
  }

  void mismatch(std::size_t event, std::string what) {
    if (replay_.mismatches.size() < kMismatchesKept) replay_.mismatches.push_back({event, std::move(what)});
  }
  std::deque<std::size_t>& pending(std::uint32_t pool) { return pending_[recording_.pools[pool].driver_heap.index()]; }
  static ByteRange range_of(const Event& event) {
    if (event.size_bytes > kBfcLargestRequest || event.address > ~std::uint64_t{0} - event.size_bytes) return {};
    return ByteRange::of(event.address, event.size_bytes);
  }

  // The model asks for a region. Smaller than asked for, it is what refusals lead to, or what the limit left; the latter tells the limit.
  std::optional<ByteRange> region(std::uint32_t pool, std::uint64_t size_bytes) {
    std::deque<std::size_t>& waiting = pending(pool);
    BfcFindings::Pool& found = findings_.pools[pool];
    if (waiting.empty() || events_[waiting.front()].kind != EventKind::kAlloc) {
      refused_ = true;
      return std::nullopt;
    }
    const Event& event = events_[waiting.front()];
    const bool first_asked = !asked_;
    asked_ = true;
    if (event.size_bytes < size_bytes && follows_by_refusals(size_bytes, event.size_bytes)) {
      refused_ = true;
      return std::nullopt;
    }
    bool as_asked = event.size_bytes == size_bytes;
    if (!as_asked && first_asked && event.size_bytes < size_bytes && !found.limit_is_known &&
        event.size_bytes % kBfcUnit == 0) {
      const std::uint64_t limit = pools_[pool].reserved_bytes() + event.size_bytes;
      const std::optional<ByteInterval>& stated = recording_.pools[pool].stated.limit;
      as_asked = !stated || (limit + kBfcUnit > stated->min && limit <= stated->max);
      found.limit_is_known = told_by_region_[pool] = true;
      found.settings.limit_bytes = limit;
      pools_[pool].set_limit(limit);
    }
    ++replay_.segment_events;
    replay_.segment_events_exact += as_asked ? 1 : 0;
    if (!as_asked) mismatch(waiting.front(), fmt::format("region of {} bytes: model {}", event.size_bytes, size_bytes));
    waiting.pop_front();
    const ByteRange range = range_of(event);
    return range.empty() ? std::nullopt : std::optional(range);
  }

  void given_back(std::uint32_t pool, ByteRange region) {
    std::deque<std::size_t>& waiting = pending(pool);
    const auto at = std::find_if(waiting.begin(), waiting.end(), [&](std::size_t index) {
      return events_[index].kind == EventKind::kFree && events_[index].address == region.begin;
    });
    if (at == waiting.end()) {
      mismatch(at_, fmt::format("model gives back the region at {:#x}, recording keeps it", region.begin));
      return;
    }
    ++replay_.segment_events;
    ++replay_.segment_events_exact;
    waiting.erase(at);
  }

  // Regions that came or went without the model: the recording is followed.
  void take_unexplained(std::uint32_t pool, std::size_t before) {
    std::deque<std::size_t>& waiting = pending(pool);
    for (; !waiting.empty(); waiting.pop_front()) {
      const Event& event = events_[waiting.front()];
      ++replay_.segment_events;
      mismatch(waiting.front(), fmt::format("region of {} bytes {} without need, before event {}", event.size_bytes,
                                            event.kind == EventKind::kAlloc ? "taken" : "given back", before));
      if (event.kind == EventKind::kAlloc)
        pools_[pool].add_region(range_of(event));
      else
        pools_[pool].drop_region(event.address);
    }
  }

  // A smaller region than the rule asks for was no limit if more is taken later: the driver had refused.
  void forget_limit_if_exceeded(std::uint32_t pool) {
    BfcFindings::Pool& found = findings_.pools[pool];
    if (!told_by_region_[pool]) return;
    std::uint64_t taken = pools_[pool].reserved_bytes();
    for (const std::size_t index : pending(pool)) {
      const Event& event = events_[index];
      if (event.kind == EventKind::kAlloc)
        taken += std::min(event.size_bytes, kBfcLargestRequest);
      else
        taken -= std::min(taken, event.size_bytes);
    }
    if (taken <= found.settings.limit_bytes) return;
    told_by_region_[pool] = false;
    found.limit_is_known = false;
    const std::optional<ByteInterval>& stated = recording_.pools[pool].stated.limit;
    found.settings.limit_bytes = stated ? stated->max : kBfcNoLimit;
    pools_[pool].set_limit(found.settings.limit_bytes);
    note_room(pool, 0);
  }

  BfcChunkIndex answer(std::size_t at, std::uint32_t pool, std::uint64_t bytes, AllocationId id) {
    at_ = at;
    asked_ = refused_ = false;
    forget_limit_if_exceeded(pool);
    // Whether empty regions would make room depends on the limit. Where that is not known, the recording shows whether they went back.
    if (!findings_.pools[pool].limit_is_known) {
      const auto goes_back = [&](std::size_t index) { return events_[index].kind == EventKind::kFree; };
      pools_[pool].set_garbage_collection(std::any_of(pending(pool).begin(), pending(pool).end(), goes_back));
    }
    RecordedDriver driver(*this, pool);
    return pools_[pool].allocate(bytes, id, driver);
  }

  void on_alloc(std::size_t at, std::uint32_t pool) {
    const Event& event = events_[at];
    if (!recording_.valid(event.allocation) || place_of_[event.allocation.index()].known()) return;
    ++replay_.placements;
    place_of_[event.allocation.index()].pool = pool;
    BfcChunkIndex& chunk = place_of_[event.allocation.index()].chunk;
    chunk = answer(at, pool, event.size_bytes, event.allocation);
    if (refused_ && chunk != kNoChunk) note_room(pool, 0);
    take_unexplained(pool, at);
    if (chunk != kNoChunk && pools_[pool].chunk(chunk).address == event.address) {
      ++replay_.exact;
      note_held(event);
      return;
    }
    if (chunk != kNoChunk) {
      mismatch(at, fmt::format("alloc of {} bytes: model {:#x}, recording {:#x}", event.size_bytes,
                               pools_[pool].chunk(chunk).address, event.address));
      pools_[pool].free(chunk);
    } else {
      mismatch(at,
               fmt::format("alloc of {} bytes: model has no room, recording {:#x}", event.size_bytes, event.address));
    }
    chunk = event.size_bytes > kBfcLargestRequest
                ? kNoChunk
                : pools_[pool].force(event.address, bfc_rounded(event.size_bytes), event.size_bytes, event.allocation);
    note_held(event);
  }

  void on_failed(std::size_t at, std::uint32_t pool) {
    const Event& event = events_[at];
    if (event.size_bytes == 0) return;  // nothing was asked for
    const std::uint64_t reserved = pools_[pool].reserved_bytes();
    std::uint64_t empty_bytes = 0;
    for (const auto& [address, region] : pools_[pool].regions())
      empty_bytes += pools_[pool].is_empty(region) ? region.size_bytes : 0;
    const BfcChunkIndex chunk = answer(at, pool, event.size_bytes, AllocationId(1));
    take_unexplained(pool, at);
    if (chunk != kNoChunk) {
      pools_[pool].free(chunk);
      mismatch(at, fmt::format("failed alloc of {} bytes: the model has room for it", event.size_bytes));
      return;
    }
    if (event.size_bytes > kBfcLargestRequest) return;
    BfcFindings::Pool& found = findings_.pools[pool];
    const std::uint64_t rounded = bfc_rounded(event.size_bytes);
    if (!found.collects && empty_bytes >= rounded)
      found.collects = false;  // collecting would have helped, limit or not
    if (!refused_) return;
    // The limit is known and left room: it was the driver that had none. Else the limit may have refused, and this is the most it can be.
    if (found.limit_is_known)
      note_room(pool, rounded);
    else
      found.limit_at_most = std::min(found.limit_at_most.value_or(kBfcNoLimit), reserved + rounded - 1);
  }

  void note_room(std::uint32_t pool, std::uint64_t short_of) {
    findings_.pools[pool].driver_refused = true;
    std::uint64_t reserved = 0;
    for (const BfcPool& each : pools_) reserved += each.reserved_bytes();
    const std::uint64_t room = reserved + (short_of == 0 ? 0 : short_of - 1);
    findings_.room_bytes = std::min(findings_.room_bytes.value_or(room), room);
  }

  void on_free(const Event& event) {
    if (!recording_.valid(event.allocation)) return;
    BfcPlace& place = place_of_[event.allocation.index()];
    if (!place.known()) return;
    pools_[place.pool].free(place.chunk);
    place = {};
  }

  void note_held(const Event& event) {
    if (held_bytes_ == nullptr || event.kind != EventKind::kAlloc || !recording_.valid(event.allocation) ||
        event.allocation.index() >= held_bytes_->size())
      return;
    const BfcPlace& place = place_of_[event.allocation.index()];
    if (place.known()) (*held_bytes_)[event.allocation.index()] = pools_[place.pool].chunk(place.chunk).size_bytes;
  }

  void finish() {
    replay_.model = "bfc";
    for (std::uint32_t number = 0; number < pools_.size(); ++number) {
      const BfcPool& pool = pools_[number];
      replay_.peak_allocated_bytes += pool.peak_in_use_bytes();
      replay_.peak_reserved_bytes += pool.peak_reserved_bytes();
      replay_.end_allocated_bytes += pool.in_use_bytes();
      replay_.end_reserved_bytes += pool.reserved_bytes();
      replay_.segments_taken += pool.regions_taken();
      replay_.segments_returned += pool.regions_returned();
      replay_.cache_flushes += pool.collections();
      findings_.pools[number].peak_reserved_bytes = pool.peak_reserved_bytes();
      compare_end(number);
    }
    if (findings_.room_bytes) findings_.room_bytes = std::max(*findings_.room_bytes, replay_.peak_reserved_bytes);
  }

  void compare_end(std::uint32_t number) {
    const Trace& trace = recording_.trace;
    const BfcPool& pool = pools_[number];
    for (const FinalSegment& segment : trace.final_segments) {
      if (segment.device != recording_.device || segment.heap != recording_.pools[number].heap) continue;
      const std::size_t begin = std::min<std::size_t>(segment.first_block, trace.final_blocks.size());
      const std::size_t end = std::min<std::size_t>(begin + segment.block_count, trace.final_blocks.size());
      replay_.end_blocks += end - begin;
      const auto region = pool.regions().find(segment.address);
      BfcChunkIndex at = region == pool.regions().end() ? kNoChunk : region->second.first;
      for (std::size_t block = begin; block < end && at != kNoChunk;) {
        const FinalBlock& expected = trace.final_blocks[block];
        const BfcChunk& chunk = pool.chunk(at);
        const bool in_use = expected.state != FinalBlock::State::kFree;
        if (chunk.address == expected.address && chunk.size_bytes == expected.size_bytes && chunk.in_use() == in_use)
          ++replay_.end_blocks_exact;
        if (chunk.address <= expected.address) at = chunk.next;
        if (expected.address <= chunk.address) ++block;
      }
    }
  }

  const BfcRecording& recording_;
  const std::vector<Event>& events_;
  std::vector<std::uint64_t>* held_bytes_;
  std::vector<BfcPool> pools_;                    // as BfcRecording::pools
  std::vector<std::deque<std::size_t>> pending_;  // by driver heap: regions that came and went since the last request
  std::vector<BfcPlace> place_of_;                // by allocation
  std::size_t at_ = 0;                            // the request that is being served: its event …
  bool asked_ = false, refused_ = false;          // … and whether the driver was asked for it, and refused
  std::vector<bool> told_by_region_;              // by pool: that its limit is known is concluded from a region's size
  ReplayResult replay_;
  BfcFindings findings_;
};

}  // namespace

BfcProofResult prove_bfc(const BfcRecording& recording, std::vector<std::uint64_t>* held_bytes) {
  return BfcProof(recording, held_bytes).run();
}

}  // namespace faultline
