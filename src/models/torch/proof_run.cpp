// Runs of driver calls: what the allocator must have been doing.
#include "models/torch/proof_run.h"

#include <algorithm>
#include <utility>

#include "fmt/format.h"

namespace faultline {
namespace {

bool is_release(const Event& call) { return call.kind == EventKind::kFree || call.kind == EventKind::kUnmap; }
bool is_plain(const Event& call) { return call.kind == EventKind::kAlloc || call.kind == EventKind::kFree; }

std::string describe(const Event& call) {
  const char* what = call.kind == EventKind::kAlloc  ? "segment alloc"
                     : call.kind == EventKind::kFree ? "segment free"
                     : call.kind == EventKind::kMap  ? "map"
                                                     : "unmap";
  return fmt::format("{} of {} bytes at {:#x}", what, call.size_bytes, call.address);
}

// Answers from a run of recorded takes; past its end the driver refused.
class RecordedDriver : public SilentDriver {
 public:
  RecordedDriver(const std::vector<Event>& events, std::span<const std::size_t> calls, std::uint64_t reservation)
      : events_(events), calls_(calls), reservation_(reservation) {}
  std::size_t used() const { return used_; }
  std::size_t exact() const { return exact_; }
  const std::string& complaint() const { return complaint_; }

  std::optional<ByteRange> take(std::uint64_t size_bytes, const SegmentOwner&) override {
    if (used_ == calls_.size()) return std::nullopt;
    const Event& call = events_[calls_[used_]];
    if (call.kind != EventKind::kAlloc || call.size_bytes > kTorchLargestRequest ||
        call.address > ~0ull - call.size_bytes) {
      complaint_ = fmt::format("model takes a segment of {} bytes", size_bytes);
      return std::nullopt;
    }
    if (call.size_bytes == size_bytes)
      ++exact_;
    else
      complaint_ = fmt::format("model takes a segment of {} bytes", size_bytes);
    ++used_;
    return ByteRange::of(call.address, call.size_bytes);
  }
  std::optional<ByteRange> reserve(std::uint64_t handle_bytes, const SegmentOwner&) override {
    if (used_ == calls_.size()) return std::nullopt;
    const Event& call = events_[calls_[used_]];
    const std::uint64_t size_bytes = (reservation_ + handle_bytes - 1) / handle_bytes * handle_bytes;
    if (call.kind != EventKind::kMap || call.address > ~0ull - size_bytes) {
      complaint_ = "model maps memory";
      return std::nullopt;
    }
    return ByteRange::of(call.address, size_bytes);
  }
  bool map(ByteRange range, const SegmentOwner&) override {
    if (used_ == calls_.size()) return false;
    const Event& call = events_[calls_[used_]];
    if (call.kind != EventKind::kMap || call.address != range.begin || call.size_bytes != range.size()) {
      complaint_ = fmt::format("model maps {} bytes at {:#x}", range.size(), range.begin);
      return false;
    }
    ++used_;
    ++exact_;
    return true;
  }

 private:
  const std::vector<Event>& events_;
  std::span<const std::size_t> calls_;
  std::uint64_t reservation_;
  std::size_t used_ = 0;
  std::size_t exact_ = 0;
  std::string complaint_;
};

}  // namespace

TorchProof::Request TorchProof::request_at(std::size_t until) {
  Request request;
  const auto is_request = [&](std::size_t at) {
    const Event& event = events_[at];
    return recording_.role(event) == HeapRole::kTorch &&
           (event.kind == EventKind::kAlloc || event.kind == EventKind::kAllocFailed);
  };
  next_request_ = std::max(next_request_, until);
  while (next_request_ < events_.size() && !is_request(next_request_)) ++next_request_;
  if (next_request_ == events_.size() || events_[next_request_].size_bytes > kTorchLargestRequest) return request;
  const Event& event = events_[next_request_];
  request.event = next_request_;
  request.present = true;
  request.is_next = next_request_ == until;
  request.rounded_bytes = event.kind == EventKind::kAlloc ? allocator_.round(event.size_bytes) : event.size_bytes;
  request.list =
      allocator_.list_for(recording_.arena(event), request.rounded_bytes <= kTorchSmallRequest, event.stream);
  return request;
}

// Between a request's first driver calls and its retry a flush completes frees, and nothing else happens.
bool TorchProof::only_waits_end(std::size_t from, std::size_t until) {
  if (!afford(until - from)) return false;
  return std::all_of(
      events_.begin() + static_cast<std::ptrdiff_t>(from), events_.begin() + static_cast<std::ptrdiff_t>(until),
      [this](const Event& event) {
        return recording_.role(event) != HeapRole::kTorch ||
               (event.kind == EventKind::kFree && (event.phase() == FreePhase::kCompleted || event.has(kFailed)));
      });
}

void TorchProof::explain_run(std::size_t until) {
  const Request request = request_at(until);
  result_.replay.segment_events += run_.size();
  const std::span<const std::size_t> calls = run_;
  bool searched = false;
  flushed_in_run_ = false;
  fresh_ = kNoIndex;
  for (std::size_t begin = 0; begin < calls.size();) {
    const bool releases = is_release(events_[calls[begin]]);
    std::size_t end = begin;
    while (end < calls.size() && is_release(events_[calls[end]]) == releases) ++end;
    if (releases) {
      // A request uses what it took at once; what is given back after a take leaves that take unused.
      if (fresh_ != kNoIndex) allocator_.return_new(fresh_);
      fresh_ = kNoIndex;
      // The request searches before it collects; an emptied cache comes before the search. Ages only matter to the former.
      if (!searched && request.is_next && end < calls.size()) allocator_.note_search(request.list), searched = true;
      explain_releases(calls.subspan(begin, end - begin), request, end < calls.size());
    } else {
      if (!searched && request.is_next) allocator_.note_search(request.list), searched = true;
      explain_takes(calls.subspan(begin, end - begin), request);
    }
    begin = end;
  }
  if (!searched && request.is_next) allocator_.note_search(request.list);
  run_.clear();
}

bool TorchProof::same_call(const Event& call, ByteRange range, bool unmap) const {
  return call.address == range.begin && call.size_bytes == range.size() && (call.kind == EventKind::kUnmap) == unmap;
}

void TorchProof::explain_releases(std::span<const std::size_t> calls, const Request& request, bool taken_after) {
  int attempts = 8;
  while (!calls.empty()) {
    const bool worth_trying = attempts > 0 && afford(allocator_.free_block_count());
    const std::size_t explained = worth_trying ? try_releases(calls, request, taken_after) : 0;
    if (explained != 0) {
      result_.replay.segment_events_exact += explained;
      calls = calls.subspan(explained);
      continue;
    }
    --attempts;
    mismatch(calls[0], describe(events_[calls[0]]) + ": not what the model would give back");
    force_call(events_[calls[0]], 0);
    calls = calls.subspan(1);
  }
}

// Tries what the allocator may have been doing, and does it if the calls begin with exactly that. Returns how many calls it explains. Only what
// nothing else explains is laid to private segments.
std::size_t TorchProof::try_releases(std::span<const std::size_t> calls, const Request& request, bool taken_after) {
  SilentDriver driver;  // plans have been compared with the recording already
  const auto begins_with = [&](const std::vector<BlockIndex>& blocks) {
    if (blocks.empty() || blocks.size() > calls.size()) return false;
    for (std::size_t at = 0; at < blocks.size(); ++at) {
      const TorchBlock& block = allocator_.block(blocks[at]);
      if (!same_call(events_[calls[at]], ByteRange::of(block.address, block.size_bytes), false)) return false;
    }
    return true;
  };
  const auto give_back = [&](const std::vector<BlockIndex>& blocks) {
    for (const BlockIndex block : blocks) allocator_.release_segment(block, driver);
    return blocks.size();
  };
  if (const std::size_t cached = match_cached(calls, 0, false); cached != 0) {
    note_flush(calls[0], request, taken_after);
    return cached;
  }
  if (settings_.gc_threshold > 0) {
    std::vector<BlockIndex> best;
    for (std::uint32_t rounds = 1; rounds <= kCollectionRounds; ++rounds) {
      std::vector<BlockIndex> plan = allocator_.plan_collection(kUnlimitedBytes, rounds);
      if (plan.size() == best.size() || !begins_with(plan)) break;
      best = std::move(plan);
    }
    if (!best.empty()) {
      result_.findings.collected = true;
      return give_back(best);
    }
  }
  if (request.present) {
    const TorchAllocator::Available available = allocator_.plan_available(request.list, request.rounded_bytes);
    if (begins_with(available.blocks)) return give_back(available.blocks);
  }
  const SegmentIndex segment = allocator_.segment_at(events_[calls[0]].address);
  const std::uint32_t arena = segment == kNoIndex ? 0 : allocator_.arena_of(allocator_.segment(segment).list);
  if (arena != 0) {
    const std::size_t swept = match_cached(calls, arena, false);
    if (swept != 0) result_.findings.freeable.push_back({run_[0], arena, !flushed_in_run_});
    return swept;
  }
  const std::size_t cached = may_hide_ ? match_cached(calls, 0, true) : 0;
  if (cached != 0) note_flush(calls[0], request, taken_after);
  return cached;
}

// Everything the arena would give back. With `hiding`, segments whose pool is only supposed and that stayed are private ones.
std::size_t TorchProof::match_cached(std::span<const std::size_t> calls, std::uint32_t arena, bool hiding) {
  const std::vector<TorchRelease> plan = allocator_.plan_cached(arena);
  std::vector<SegmentIndex> stayed;
  std::size_t matched = 0;
  for (const TorchRelease& step : plan) {
    if (matched < calls.size() && same_call(events_[calls[matched]], step.range, step.unmap)) {
      ++matched;
      continue;
    }
    const SegmentIndex segment = allocator_.block(step.block).segment;
    if (!hiding || step.unmap || allocator_.segment(segment).pool_known || stayed.size() == kSuspects) return 0;
    stayed.push_back(segment);
  }
  if (matched == 0) return 0;
  for (const SegmentIndex segment : stayed) {
    const ListIndex list = allocator_.segment(segment).list;
    hide(segment, hidden_arena(list, allocator_.segment(segment).size_bytes));
  }
  SilentDriver driver;
  std::size_t at = 0;
  for (const TorchRelease& step : plan) {
    if (at == matched || !same_call(events_[calls[at]], step.range, step.unmap)) continue;
    ++at;
    allocator_.release(step, driver);
  }
  return matched;
}

// The whole cache went back: because a request could not be served, or because the program asked for it. A release carries the stack of its
// cause, so where the request's stack is known it tells.
void TorchProof::note_flush(std::size_t first_call, const Request& request, bool taken_after) {
  flushed_in_run_ = true;
  const bool failed_after = request.is_next && events_[request.event].kind == EventKind::kAllocFailed;
  bool retry = request.is_next && (taken_after || failed_after);
  if (retry && release_stacks_tell_ && events_[request.event].stack.value != 0)
    retry = events_[first_call].stack == events_[request.event].stack;
  if (retry)
    ++result_.replay.cache_flushes;
  else
    result_.findings.empty_cache_events.push_back(first_call);
}

ListIndex TorchProof::list_of_takes(const Event& first, const Request& request) {
  const SegmentOwner owner = allocator_.owner_of(request.list);
  if (owner.arena != 0) {
    if (is_plain(first) && allocator_.expandable_in(owner.arena)) allocator_.set_own_allocator(owner.arena);
    return request.list;
  }
  if (!may_hide_) return request.list;
  // What a flush completes comes free too late for the request that caused it: it takes new memory although a block would fit.
  const bool fits =
      !(waits_ended_ && flushed_in_run_) && allocator_.find(request.list, request.rounded_bytes) != kNoIndex;
  const bool elsewhere =
      !is_plain(first) && allocator_.room_elsewhere(request.list, request.rounded_bytes, first.address);
  if (!fits && !elsewhere) return request.list;
  if (is_plain(first)) {
    private_segments_ = true;
    return allocator_.list_for(hidden_arena(request.list, request.rounded_bytes), owner.is_small, owner.stream);
  }
  for (const std::uint32_t arena : hidden_arenas_) {
    const ListIndex list = allocator_.list_for(arena, owner.is_small, owner.stream);
    if (allocator_.find(list, request.rounded_bytes) == kNoIndex &&
        !allocator_.room_elsewhere(list, request.rounded_bytes, first.address))
      return list;
  }
  if (hidden_arenas_.size() >= kHiddenArenas) return request.list;
  hidden_arenas_.push_back(allocator_.add_arena(true));
  private_segments_ = true;
  return allocator_.list_for(hidden_arenas_.back(), owner.is_small, owner.stream);
}

// An expandable segment's end may have room that the search passes over and growing then finds: memory without a driver call.
BlockIndex TorchProof::obtain_mapped(ListIndex list, std::uint64_t rounded) {
  SilentDriver driver;
  return allocator_.expandable_in(allocator_.arena_of(list)) ? allocator_.obtain(list, rounded, driver) : kNoIndex;
}

void TorchProof::explain_takes(std::span<const std::size_t> calls, const Request& request) {
  std::uint32_t arena = 0;
  if (request.is_next || (request.present && only_waits_end(calls.back(), request.event))) {
    const Event& first = events_[calls[0]];
    const ListIndex list = list_of_takes(first, request);
    arena = allocator_.arena_of(list);
    RecordedDriver driver(events_, calls, reservation_bytes(recording_));
    const BlockIndex obtained = allocator_.obtain(list, request.rounded_bytes, driver);
    if (obtained != kNoIndex) {
      if (fresh_ != kNoIndex) allocator_.return_new(fresh_);
      fresh_ = obtained;
      const bool hidden = std::find(hidden_arenas_.begin(), hidden_arenas_.end(), arena) != hidden_arenas_.end();
      if (hidden) ++result_.replay.inferred_private_segments;
      TorchSegment& segment = allocator_.segment(allocator_.block(obtained).segment);
      segment.pool_known = !hidden && (arena != 0 || is_kept(first));
      if (arena != 0) private_segments_ = true;
      if (!request.is_next) allocator_.return_new(std::exchange(fresh_, kNoIndex));
    }
    result_.replay.segment_events_exact += driver.exact();
    if (!driver.complaint().empty()) mismatch(calls[0], describe(first) + ": " + driver.complaint());
    if (driver.used() < calls.size() && driver.complaint().empty())
      mismatch(calls[driver.used()], describe(events_[calls[driver.used()]]) + ": the model needs no more memory");
    calls = calls.subspan(driver.used());
  } else {
    mismatch(calls[0], describe(events_[calls[0]]) + ": no request follows");
  }
  for (const std::size_t call : calls) force_call(events_[call], arena);
}

// A segment still there at the end: the importer has told its events' pool.
bool TorchProof::is_kept(const Event& call) {
  if (never_freed_.empty()) {
    never_freed_.assign(recording_.largest_allocation + std::size_t{1}, true);
    for (const Event& event : events_) {
      if (recording_.role(event) == HeapRole::kDriver && event.returns_to_heap() &&
          recording_.valid(event.allocation)) {
        never_freed_[event.allocation.index()] = false;
      }
    }
  }
  return !recording_.trace.final_segments.empty() && recording_.valid(call.allocation) &&
         never_freed_[call.allocation.index()];
}

void TorchProof::force_call(const Event& call, std::uint32_t arena) {
  if (call.size_bytes == 0 || call.size_bytes > kTorchLargestRequest || call.address > ~0ull - call.size_bytes) return;
  const ByteRange range = ByteRange::of(call.address, call.size_bytes);
  switch (call.kind) {
    case EventKind::kAlloc: {
      const ListIndex list = allocator_.list_for(arena, call.size_bytes <= kTorchSmallSegment, call.stream);
      const SegmentIndex segment = allocator_.add_segment(list, range, 0);
      if (segment != kNoIndex) allocator_.append_block(segment, kNoIndex, range.size(), TorchBlock::State::kFree, {});
      break;
    }
    case EventKind::kFree: {
      const SegmentIndex segment = allocator_.segment_at(call.address);
      if (segment != kNoIndex && !allocator_.segment(segment).expandable() &&
          allocator_.segment(segment).address == call.address) {
        allocator_.drop_segment(segment);
      }
      break;
    }
    case EventKind::kMap: {
      if (allocator_.force_map(range)) break;
      const bool is_small = call.size_bytes % settings_.large_segment_bytes != 0;
      const std::uint64_t reservation = std::max(reservation_bytes(recording_), range.size());
      if (call.address > ~0ull - reservation) break;
      const SegmentIndex segment =
          allocator_.add_segment(allocator_.list_for(arena, is_small, call.stream),
                                 ByteRange::of(call.address, reservation), allocator_.handle_bytes(is_small));
      if (segment == kNoIndex) break;
      allocator_.append_block(segment, kNoIndex, reservation, TorchBlock::State::kUnmapped, {});
      allocator_.force_map(range);
      break;
    }
    default: allocator_.force_unmap(range);
  }
}

}  // namespace faultline
