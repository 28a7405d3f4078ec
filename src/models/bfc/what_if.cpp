#include "models/bfc/what_if.h"

#include <algorithm>
#include <memory>

#include "models/bfc/replay_trace.h"
#include "models/torch/segment_addresses.h"

namespace faultline {
namespace {

constexpr std::size_t kFailuresKept = 16;
constexpr std::uint64_t kFirstAddress = 0x7f0000000000, kLowestAddress = 2 * kMiB;

// A driver with a budget. A region that the recording has too gets the recorded address, since ties go to the lowest one; others lie where cudaMalloc would put them.
class Regions {
 public:
  Regions(const BfcRecording& recording, std::uint64_t budget_bytes)
      : left_bytes_(budget_bytes), addresses_({kLowestAddress, lowest_recorded(recording)}) {
    recorded_.resize(recording.pools.size());
    for (const Event& event : recording.trace.events) {
      const std::uint32_t pool =
          recording.from_driver(event) && event.kind == EventKind::kAlloc ? recording.pool_above(event.heap) : kNoPool;
      if (pool != kNoPool && event.address != 0 && event.address < (std::uint64_t{1} << 60) &&
          event.size_bytes <= kBfcLargestRequest && event.size_bytes != 0)
        recorded_[pool].push_back(ByteRange::of(event.address, event.size_bytes));
    }
    next_.resize(recording.pools.size());
  }

  std::optional<ByteRange> take(std::uint32_t pool, std::uint64_t size_bytes) {
    if (size_bytes > left_bytes_) return std::nullopt;
    std::optional<ByteRange> region = recorded_region(pool, size_bytes);
    if (!region) {
      const std::optional<std::uint64_t> address = addresses_.take(size_bytes);
      if (!address) return std::nullopt;
      region = ByteRange::of(*address, size_bytes);
    }
    add(*region);
    return region;
  }
  void add(ByteRange region) {
    taken_[region.begin] = region.end;
    left_bytes_ -= std::min(left_bytes_, region.size());
  }
  void give_back(ByteRange region) {
    addresses_.give_back(region);
    taken_.erase(region.begin);
    left_bytes_ += region.size();
  }

 private:
  static std::uint64_t lowest_recorded(const BfcRecording& recording) {
    std::uint64_t lowest = kFirstAddress;
    for (const Event& event : recording.trace.events) {
      if (recording.from_driver(event) && event.kind == EventKind::kAlloc && event.address >= kFirstAddress / 2)
        lowest = std::min(lowest, event.address);
    }
    return lowest / kLowestAddress * kLowestAddress;
  }
  // The next one of the recording, if it has this size and its place is free.
  std::optional<ByteRange> recorded_region(std::uint32_t pool, std::uint64_t size_bytes) {
    if (next_[pool] >= recorded_[pool].size()) return std::nullopt;
    const ByteRange region = recorded_[pool][next_[pool]++];
    const auto above = taken_.lower_bound(region.begin);
    if (region.size() != size_bytes || (above != taken_.end() && above->first < region.end) ||
        (above != taken_.begin() && std::prev(above)->second > region.begin))
      return std::nullopt;
    return region;
  }

  std::uint64_t left_bytes_;
  SegmentAddresses addresses_;
  std::vector<std::vector<ByteRange>> recorded_;  // by pool, in order
  std::vector<std::size_t> next_;
  std::map<std::uint64_t, std::uint64_t> taken_;  // begin, end
};

class BfcWhatIf {
 public:
  BfcWhatIf(const BfcRecording& recording, const std::vector<BfcSettings>& settings, const BfcFindings& findings,
            const ReplayOptions& options)
      : recording_(recording),
        settings_(settings),
        budget_bytes_(options.segment_budget_bytes.value_or(findings.room_bytes.value_or(kBfcNoLimit))),
        regions_(recording, budget_bytes_),
        curve_(options.curve),
        sizes_(recording.trace, options.estimates) {
    result_.model = "bfc";
    if (options.want_trace) writer_ = std::make_unique<BfcReplayTrace>(recording);
  }

  ReplayResult run() {
    const std::vector<Event>& events = recording_.trace.events;
    const std::size_t first = begin();
    if (curve_ != nullptr && first != 0) curve_->note(first - 1, reserved_bytes());
    for (std::size_t at = first; at < events.size(); ++at) {
      const Event& event = events[at];
      if (event.device == recording_.device && sizes_.of_unmade(event) != 0) serve_unmade(at, event);
      const std::uint32_t pool = recording_.pool_of(event);
      if (pool == kNoPool || (event.kind == EventKind::kFree && event.has(kFailed))) {
        if (writer_) writer_->other(event);
        continue;
      }
      if (writer_) writer_->begin(event);
      if (event.kind == EventKind::kAlloc)
        on_alloc(at, event, pool);
      else if (event.kind == EventKind::kAllocFailed)
        on_failed(at, event, pool);
      else if (event.kind == EventKind::kFree)
        on_free(event);
      else
        continue;
      ++result_.events;
      if (curve_ != nullptr) curve_->note(at, reserved_bytes());
    }
    finish();
    return std::move(result_);
  }

 private:
  class Below : public BfcDriver {
   public:
    Below(BfcWhatIf& replay, std::uint32_t pool) : replay_(replay), pool_(pool) {}
    std::optional<ByteRange> take(std::uint64_t size_bytes) override {
      const std::optional<ByteRange> region = replay_.regions_.take(pool_, size_bytes);
      if (region && replay_.writer_) replay_.writer_->region_taken(pool_, *region);
      return region;
    }
    void give_back(ByteRange region) override {
      replay_.regions_.give_back(region);
      if (replay_.writer_) replay_.writer_->region_returned(pool_, region);
    }

   private:
    BfcWhatIf& replay_;
    std::uint32_t pool_;
  };

  void make_pools() {
    pools_.clear();
    for (const BfcSettings& each : settings_) pools_.emplace_back(each);
    place_of_.assign(recording_.largest_allocation + std::size_t{1}, {});
  }

  // The layout found at the start stays where the settings allow it; else its chunks are asked for anew. Returns the first event to serve.
  std::size_t begin() {
    make_pools();
    const std::size_t count = std::min<std::size_t>(recording_.trace.preexisting_count, recording_.trace.events.size());
    if (count == 0) return 0;
    build_start_state(recording_, pools_, place_of_);
    std::uint64_t reserved = 0;
    bool fits = true;
    for (const BfcPool& pool : pools_) {
      reserved += pool.reserved_bytes();
      fits &= pool.reserved_bytes() <= pool.settings().limit_bytes;
      fits &= pool.settings().growth || pool.regions().size() <= 1;
    }
    if (!fits || reserved > budget_bytes_) {
      make_pools();
      return 0;
    }
    for (const BfcPool& pool : pools_) {
      for (const auto& [address, region] : pool.regions()) regions_.add(ByteRange::of(address, region.size_bytes));
    }
    if (writer_) writer_->copy_preexisting(count);
    return count;
  }

  BfcChunkIndex place(std::size_t at, const Event& event, std::uint32_t pool, AllocationId id) {
    Below below(*this, pool);
    const BfcChunkIndex chunk = pools_[pool].allocate(event.size_bytes, id, below);
    note_peaks();
    if (chunk != kNoChunk || event.size_bytes == 0) return chunk;
    ++result_.failure_count;
    if (result_.failures.size() < kFailuresKept)
      result_.failures.push_back({at, event.size_bytes, bfc_rounded(std::min(event.size_bytes, kBfcLargestRequest)),
                                  pools_[pool].in_use_bytes(), pools_[pool].reserved_bytes()});
    return chunk;
  }

  std::uint64_t reserved_bytes() const {
    std::uint64_t sum = 0;
    for (const BfcPool& pool : pools_) sum += pool.reserved_bytes();
    return sum;
  }

  void note_peaks() {
    std::uint64_t in_use = 0;
    for (const BfcPool& pool : pools_) in_use += pool.in_use_bytes();
    result_.peak_allocated_bytes = std::max(result_.peak_allocated_bytes, in_use);
    result_.peak_reserved_bytes = std::max(result_.peak_reserved_bytes, reserved_bytes());
  }

  // What may be taken for a moment and was not.
  void serve_unmade(std::size_t at, const Event& event) {
    Event request = event;
    request.size_bytes = sizes_.of_unmade(event);
    const std::uint32_t pool = recording_.main_pool();
    const BfcChunkIndex chunk = place(at, request, pool, AllocationId(1));
    if (chunk != kNoChunk) pools_[pool].free(chunk);
  }

  void on_alloc(std::size_t at, const Event& recorded, std::uint32_t pool) {
    if (!recording_.valid(recorded.allocation) || place_of_[recorded.allocation.index()].known()) return;
    Event event = recorded;
    event.size_bytes = sizes_.of(recorded);
    if (event.size_bytes == 0 && recorded.size_bytes != 0) return;
    const BfcChunkIndex chunk = place(at, event, pool, event.allocation);
    if (chunk == kNoChunk) {
      if (writer_ && event.size_bytes != 0) writer_->failed(event);
      return;
    }
    place_of_[event.allocation.index()] = {pool, chunk};
    ++result_.placements;
    if (writer_) writer_->allocated(event, pools_[pool].chunk(chunk).address);
  }

  void on_free(const Event& event) {
    if (!event.returns_to_heap() || !recording_.valid(event.allocation)) return;
    BfcPlace& place = place_of_[event.allocation.index()];
    if (!place.known()) return;
    pools_[place.pool].free(place.chunk);
    place = {};
    if (writer_) writer_->freed(event);
  }

  // The recorded program saw this request fail. If it is served here, what would have come of it is not known: it is given back at once.
  void on_failed(std::size_t at, const Event& event, std::uint32_t pool) {
    if (event.size_bytes == 0 || sizes_.is_of_estimate(at)) return;
    ++result_.recorded_failures;
    const BfcChunkIndex chunk = place(at, event, pool, AllocationId(1));
    if (chunk == kNoChunk) {
      if (writer_) writer_->failed(event);
      return;
    }
    ++result_.recorded_failures_served;
    if (writer_) writer_->served_and_dropped(event, pools_[pool].chunk(chunk).address);
    pools_[pool].free(chunk);
  }

  void finish() {
    note_peaks();
    for (const BfcPool& pool : pools_) {
      result_.end_allocated_bytes += pool.in_use_bytes();
      result_.end_reserved_bytes += pool.reserved_bytes();
      result_.segments_taken += pool.regions_taken();
      result_.segments_returned += pool.regions_returned();
      result_.cache_flushes += pool.collections();
    }
    if (writer_) result_.trace = writer_->finish(pools_);
  }

  const BfcRecording& recording_;
  const std::vector<BfcSettings>& settings_;
  std::uint64_t budget_bytes_;
  Regions regions_;
  ReplayCurve* curve_;
  EstimatedSizes sizes_;
  std::vector<BfcPool> pools_;
  std::vector<BfcPlace> place_of_;  // by allocation
  std::unique_ptr<BfcReplayTrace> writer_;
  ReplayResult result_;
};

}  // namespace

ReplayResult replay_bfc(const BfcRecording& recording, const std::vector<BfcSettings>& settings,
                        const BfcFindings& findings, const ReplayOptions& options) {
  return BfcWhatIf(recording, settings, findings, options).run();
}

}  // namespace faultline
