#include "models/torch/what_if.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "models/torch/trace_writer.h"

namespace faultline {
namespace {

constexpr std::size_t kFailuresKept = 16;

std::optional<std::uint64_t> limit_of(const TorchRecording& recording, const TorchSettings& recorded,
                                      const TorchSettings& settings, const SettingChanges& changes) {
  if (settings.memory_fraction < 1) {
    if (recording.capacity_bytes == 0) return recording.limit_bytes;
    return static_cast<std::uint64_t>(settings.memory_fraction * static_cast<double>(recording.capacity_bytes));
  }
  // Asking for the whole device lifts a limit, also one that the program set in its code.
  const bool lifted = std::any_of(changes.begin(), changes.end(),
                                  [](const auto& change) { return change.first == "per_process_memory_fraction"; });
  return lifted || recorded.memory_fraction < 1 ? std::nullopt : recording.limit_bytes;
}

// The addresses of the recorded start state, so that new segments can come beside it; nothing if it has no segments or no room beside them.
std::optional<ByteRange> range_of_start(const TorchRecording& recording) {
  ByteRange start{UINT64_MAX, 0};
  const std::size_t count = std::min<std::size_t>(recording.trace.preexisting_count, recording.trace.events.size());
  for (std::size_t at = 0; at < count; ++at) {
    const Event& event = recording.trace.events[at];
    if (recording.role(event) != HeapRole::kDriver ||
        (event.kind != EventKind::kAlloc && event.kind != EventKind::kMap))
      continue;
    if (event.size_bytes > kTorchLargestRequest || event.address > (1ull << 60)) return std::nullopt;
    start.begin = std::min(start.begin, event.address);
    start.end = std::max(start.end, event.address + event.size_bytes);
    if (event.kind == EventKind::kMap) start.end = std::max(start.end, event.address + reservation_bytes(recording));
  }
  if (start.empty()) return std::nullopt;
  return start;
}

// Something to do before an event: the recording's program emptied its cache, or a private pool became free to be given back.
struct Action {
  std::uint64_t event = 0;
  bool empty_cache = false;
  std::uint32_t arena = 0;
  bool sweep_now = false;
};

class TorchWhatIf {
 public:
  TorchWhatIf(const TorchRecording& recording, const RecordedTorchSettings& recorded, const TorchSettings& settings,
              const TorchFindings& findings, const ReplayOptions& options)
      : recording_(recording),
        recorded_(recorded),
        settings_(settings),
        findings_(findings),
        want_trace_(options.want_trace),
        curve_(options.curve),
        sizes_(recording.trace, options.estimates),
        limit_(limit_of(recording, recorded.settings, settings, options.changes)) {
    budget_ = options.segment_budget_bytes ? *options.segment_budget_bytes : findings.budget_bytes.value_or(kNoBudget);
    budget_ = std::min(budget_, kNoBudget);
    // A program that collects garbage has a limit. Where nothing says which, the room it is known to have had stands in.
    if (!limit_ && findings.collected && findings.budget_bytes) limit_ = findings.budget_bytes;
  }

  ReplayResult run() {
    result_.model = "torch-native";
    result_.settings = settings_.text();
    std::size_t first = 0;
    if (!begin_with_recorded_layout(first)) begin_empty();
    collect_actions();
    if (curve_ != nullptr && first != 0) curve_->note(first - 1, allocator_->reserved_bytes());
    if (want_trace_)
      serve<true>(first);
    else
      serve<false>(first);
    finish();
    return std::move(result_);
  }

 private:
  void make_allocator() {
    allocator_ = std::make_unique<TorchAllocator>(settings_, recorded_.traits, recording_.trace.streams);
    const std::uint32_t arenas =
        std::max(findings_.arena_count, static_cast<std::uint32_t>(recording_.heap_of_arena.size()));
    for (std::uint32_t arena = 1; arena < arenas; ++arena) {
      allocator_->add_arena(true);
      if (arena < findings_.own_allocator.size() && findings_.own_allocator[arena])
        allocator_->set_own_allocator(arena);
    }
    allocator_->set_limit(limit_);
    allocator_->count_ages(limit_.has_value() && settings_.gc_threshold > 0);
    block_of_.assign(recording_.largest_allocation + std::size_t{1}, kNoIndex);
  }

  void make_driver(ByteRange layout) {
    budget_driver_ = std::make_unique<BudgetDriver>(budget_, layout, reservation_bytes(recording_));
    driver_ = budget_driver_.get();
    if (!want_trace_) return;
    writer_ = std::make_unique<TraceWriter>(recording_, *budget_driver_);
    driver_ = writer_.get();
    allocator_->on_early_completion([this](AllocationId id) { writer_->completed_early(id); });
  }

  // The layout found at the start is kept where the settings could have led to it and it fits; else its blocks are asked for anew.
  bool begin_with_recorded_layout(std::size_t& first) {
    const bool possible = settings_.expandable == recorded_.settings.expandable &&
                          settings_.large_segment_bytes == recorded_.settings.large_segment_bytes;
    const std::optional<ByteRange> start = possible ? range_of_start(recording_) : std::nullopt;
    if (!start) return false;
    make_allocator();
    build_start_state(recording_, *allocator_, block_of_);
    if (allocator_->reserved_bytes() > std::min(budget_, limit_.value_or(kNoBudget))) return false;
    make_driver(*start);
    budget_driver_->set_in_use(allocator_->reserved_bytes());
    first = std::min<std::size_t>(recording_.trace.preexisting_count, recording_.trace.events.size());
    if (writer_) writer_->copy_preexisting(first);
    return true;
  }

  void begin_empty() {
    make_allocator();
    make_driver({kFirstSegmentAddress, kFirstSegmentAddress});
  }

  void collect_actions() {
    for (const TorchFindings::Freeable& freeable : findings_.freeable)
      actions_.push_back({freeable.event, false, freeable.arena, freeable.on_its_own});
    for (const std::uint64_t event : findings_.empty_cache_events) actions_.push_back({event, true, 0, false});
    std::stable_sort(actions_.begin(), actions_.end(),
                     [](const Action& a, const Action& b) { return a.event < b.event; });
  }

  template <bool kWrite>
  void serve(std::size_t first) {
    const std::vector<Event>& events = recording_.trace.events;
    std::size_t next_action = 0;
    std::uint64_t consumed = 0;
    for (std::size_t at = first; at < events.size(); ++at) {
      while (next_action < actions_.size() && actions_[next_action].event <= at) {
        act(actions_[next_action++], events[at]);
        if (curve_ != nullptr) curve_->note(at, allocator_->reserved_bytes());
      }
      const Event& event = events[at];
      if (event.device == recording_.device && sizes_.of_unmade(event) != 0) serve_unmade(at, event);
      if (recording_.role(event) != HeapRole::kTorch) {
        if constexpr (kWrite) writer_->other(event);
        continue;
      }
      switch (event.kind) {
        case EventKind::kAlloc: serve_alloc<kWrite>(at, event); break;
        case EventKind::kFree:
          if (event.has(kFailed)) {
            if constexpr (kWrite) writer_->other(event);
            continue;
          }
          // The two halves of a free mostly stand side by side; then the block need not wait in between.
          if (at + 1 < events.size() && completes_at_once(event, events[at + 1])) {
            serve_free<kWrite>(event, true);
            ++at;
            ++consumed;
          } else {
            serve_free<kWrite>(event, false);
          }
          break;
        case EventKind::kAllocFailed: serve_failed<kWrite>(at, event); break;
        default:
          if constexpr (kWrite) writer_->other(event);
          continue;
      }
      ++consumed;
      if (curve_ != nullptr) curve_->note(at, allocator_->reserved_bytes());
    }
    result_.events = consumed;
  }

  void act(const Action& action, const Event& cause) {
    if (writer_) writer_->begin(cause);
    if (action.empty_cache) {
      allocator_->empty_cache(freeable_, *driver_);
      return;
    }
    if (std::find(freeable_.begin(), freeable_.end(), action.arena) == freeable_.end())
      freeable_.push_back(action.arena);
    if (!action.sweep_now) return;
    for (const TorchRelease& step : allocator_->plan_cached(action.arena)) allocator_->release(step, *driver_);
  }

  std::uint32_t arena_of(const Event& event) {
    if (next_moved_ < findings_.moved.size() && findings_.moved[next_moved_].first == event.allocation)
      return findings_.moved[next_moved_++].second;
    return recording_.arena(event);
  }

  BlockIndex place(std::size_t at, const Event& event, std::uint64_t rounded, std::uint32_t arena) {
    BlockIndex block = kNoIndex;
    if (event.size_bytes <= kTorchLargestRequest) {
      const ListIndex list = allocator_->list_for(arena, rounded <= kTorchSmallRequest, event.stream);
      block = allocator_->allocate(list, rounded, event.allocation, freeable_, *driver_);
    }
    if (block == kNoIndex) {
      ++result_.failure_count;
      if (result_.failures.size() < kFailuresKept) {
        const std::uint64_t asked =
            event.size_bytes <= kTorchLargestRequest ? allocator_->segment_bytes(rounded) : event.size_bytes;
        result_.failures.push_back(
            {at, event.size_bytes, asked, allocator_->allocated_bytes(), allocator_->reserved_bytes()});
      }
    }
    return block;
  }

  // What may be taken for a moment and was not.
  void serve_unmade(std::size_t at, const Event& event) {
    Event request = event;
    request.size_bytes = sizes_.of_unmade(event);
    const std::uint64_t rounded =
        request.size_bytes <= kTorchLargestRequest ? allocator_->round(request.size_bytes) : 0;
    const BlockIndex block = place(at, request, rounded, 0);
    if (block != kNoIndex) allocator_->free_now(block);
  }

  template <bool kWrite>
  void serve_alloc(std::size_t at, const Event& recorded) {
    if (!recording_.valid(recorded.allocation) || block_of_[recorded.allocation.index()] != kNoIndex) return;
    Event event = recorded;
    event.size_bytes = sizes_.of(recorded);
    if (event.size_bytes == 0 && recorded.size_bytes != 0) return;
    if constexpr (kWrite) writer_->begin(event);
    const std::uint64_t rounded = event.size_bytes <= kTorchLargestRequest ? allocator_->round(event.size_bytes) : 0;
    const BlockIndex block = place(at, event, rounded, arena_of(event));
    if (block == kNoIndex) {
      if constexpr (kWrite) writer_->failed(event);
      return;
    }
    block_of_[event.allocation.index()] = block;
    ++result_.placements;
    if constexpr (kWrite) writer_->allocated(event, allocator_->block(block).address);
  }

  bool completes_at_once(const Event& event, const Event& next) const {
    return event.phase() == FreePhase::kRequested && next.kind == EventKind::kFree &&
           next.allocation == event.allocation && next.phase() == FreePhase::kCompleted && !next.has(kFailed) &&
           recording_.role(next) == HeapRole::kTorch;
  }

  template <bool kWrite>
  void serve_free(const Event& event, bool at_once) {
    if (!recording_.valid(event.allocation)) return;
    const BlockIndex index = block_of_[event.allocation.index()];
    if (index == kNoIndex) return;
    const TorchBlock& block = allocator_->block(index);
    if (block.allocation != event.allocation) return;
    const bool pending = block.state == TorchBlock::State::kPending;
    if (at_once && !pending) {
      allocator_->free_now(index);
      if constexpr (kWrite) {
        writer_->freed(event, FreePhase::kRequested);
        writer_->freed(event, FreePhase::kCompleted);
      }
      return;
    }
    if (at_once) {
      allocator_->complete_free(index);
      if constexpr (kWrite) writer_->freed(event, FreePhase::kCompleted);
      return;
    }
    if (event.phase() == FreePhase::kRequested) {
      if (pending) return;
      allocator_->request_free(index);
    } else if (pending) {
      allocator_->complete_free(index);
    } else {
      allocator_->free_now(index);
    }
    if constexpr (kWrite)
      writer_->freed(event, event.phase() == FreePhase::kCompleted && !pending ? FreePhase::kBoth : event.phase());
  }

  // The recorded program saw this request fail. If it is served here, what would have come of it is not known: it is given back at once.
  template <bool kWrite>
  void serve_failed(std::size_t at, const Event& event) {
    if (sizes_.is_of_estimate(at)) return;
    if constexpr (kWrite) writer_->begin(event);
    ++result_.recorded_failures;
    const BlockIndex block = place(at, event, event.size_bytes, recording_.arena(event));
    if (block == kNoIndex) {
      if constexpr (kWrite) writer_->failed(event);
      return;
    }
    ++result_.recorded_failures_served;
    if constexpr (kWrite) writer_->served_and_dropped(event, allocator_->block(block).address);
    allocator_->free_now(block);
  }

  void finish() {
    result_.peak_allocated_bytes = allocator_->peak_allocated_bytes();
    result_.peak_reserved_bytes = allocator_->peak_reserved_bytes();
    result_.end_allocated_bytes = allocator_->allocated_bytes();
    result_.end_reserved_bytes = allocator_->reserved_bytes();
    result_.segments_taken = allocator_->segments_taken();
    result_.segments_returned = allocator_->segments_returned();
    result_.cache_flushes = allocator_->cache_flushes();
    if (writer_) result_.trace = writer_->finish(*allocator_, settings_);
  }

  const TorchRecording& recording_;
  const RecordedTorchSettings& recorded_;
  const TorchSettings& settings_;
  const TorchFindings& findings_;
  bool want_trace_;
  ReplayCurve* curve_;
  EstimatedSizes sizes_;
  std::optional<std::uint64_t> limit_;
  std::uint64_t budget_ = kNoBudget;
  std::unique_ptr<TorchAllocator> allocator_;
  std::unique_ptr<BudgetDriver> budget_driver_;
  std::unique_ptr<TraceWriter> writer_;
  TorchDriver* driver_ = nullptr;
  std::vector<BlockIndex> block_of_;
  std::vector<Action> actions_;
  std::vector<std::uint32_t> freeable_;
  std::size_t next_moved_ = 0;
  ReplayResult result_;
};

}  // namespace

ReplayResult replay_torch(const TorchRecording& recording, const RecordedTorchSettings& recorded,
                          const TorchSettings& settings, const TorchFindings& findings, const ReplayOptions& options) {
  return TorchWhatIf(recording, recorded, settings, findings, options).run();
}

}  // namespace faultline
