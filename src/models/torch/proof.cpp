#include "models/torch/proof.h"

#include <algorithm>

#include "fmt/format.h"
#include "models/torch/final_state.h"
#include "models/torch/proof_run.h"

namespace faultline {

TorchProof::TorchProof(const TorchRecording& recording, const RecordedTorchSettings& recorded,
                       std::vector<std::uint64_t>* held_bytes)
    : recording_(recording),
      events_(recording.trace.events),
      allocator_(recorded.settings, recorded.traits, recording.trace.streams),
      settings_(recorded.settings),
      may_hide_(recorded.oldest < TorchVersion{2, 12}),
      release_stacks_tell_(recorded.version >= TorchVersion{2, 3}),
      held_bytes_(held_bytes) {
  for (std::size_t arena = 1; arena < recording.heap_of_arena.size(); ++arena) allocator_.add_arena(true);
  allocator_.count_ages(recorded.settings.gc_threshold > 0);
  work_left_ = 20'000'000 + 100 * static_cast<std::uint64_t>(recording.trace.events.size());
  block_of_.assign(recording.largest_allocation + std::size_t{1}, kNoIndex);
  result_.replay.model = "torch-native";
  result_.replay.settings = recorded.settings.text();
}

TorchProofResult TorchProof::run() {
  build_start_state(recording_, allocator_, block_of_);
  note_private_start();
  for (std::size_t id = 1; id < block_of_.size(); ++id) note_held(AllocationId(static_cast<std::uint32_t>(id)));
  for (std::size_t at = std::min<std::size_t>(recording_.trace.preexisting_count, events_.size()); at < events_.size();
       ++at) {
    const Event& event = events_[at];
    const HeapRole role = recording_.role(event);
    if (role == HeapRole::kElsewhere) continue;
    if (role == HeapRole::kDriver) {
      const bool is_memory = event.kind == EventKind::kAlloc || event.kind == EventKind::kMap ||
                             event.kind == EventKind::kUnmap || event.returns_to_heap();
      if (is_memory) run_.push_back(at);
      continue;
    }
    switch (event.kind) {
      case EventKind::kAlloc: on_alloc(at); break;
      case EventKind::kFree:
        if (event.has(kFailed)) continue;
        if (!run_.empty()) explain_run(at);
        on_free(event);
        break;
      case EventKind::kAllocFailed: on_failed(at); break;
      default: continue;
    }
    waits_ended_ = event.kind == EventKind::kFree && event.phase() == FreePhase::kCompleted;
    ++result_.replay.events;
  }
  if (!run_.empty()) explain_run(events_.size());
  finish();
  return std::move(result_);
}

void TorchProof::note_private_start() {
  for (SegmentIndex segment = 0; segment < allocator_.segment_count(); ++segment) {
    if (allocator_.arena_of(allocator_.segment(segment).list) != 0) private_segments_ = true;
  }
}

void TorchProof::finish() {
  ReplayResult& replay = result_.replay;
  replay.peak_allocated_bytes = allocator_.peak_allocated_bytes();
  replay.peak_reserved_bytes = allocator_.peak_reserved_bytes();
  replay.end_allocated_bytes = allocator_.allocated_bytes();
  replay.end_reserved_bytes = allocator_.reserved_bytes();
  replay.segments_taken = allocator_.segments_taken();
  replay.segments_returned = allocator_.segments_returned();
  compare_end();
  TorchFindings& findings = result_.findings;
  findings.arena_count = allocator_.arena_count();
  for (std::uint32_t arena = 0; arena < allocator_.arena_count(); ++arena)
    findings.own_allocator.push_back(allocator_.has_own_allocator(arena));
  if (findings.collected && !findings.budget_bytes) findings.budget_bytes = replay.peak_reserved_bytes;
  if (findings.budget_bytes) findings.budget_bytes = std::max(*findings.budget_bytes, replay.peak_reserved_bytes);
}

// The snapshot's own end state against the model's: the sizes of blocks, which no event tells.
void TorchProof::compare_end() {
  ReplayResult& replay = result_.replay;
  for (const FinalSegment& final_segment : recording_.trace.final_segments) {
    if (final_segment.device != recording_.device) continue;
    const std::size_t begin = std::min<std::size_t>(final_segment.first_block, recording_.trace.final_blocks.size());
    const std::size_t end = std::min(begin + final_segment.block_count, recording_.trace.final_blocks.size());
    replay.end_blocks += end - begin;
    const SegmentIndex segment = allocator_.segment_at(final_segment.address);
    if (segment == kNoIndex) continue;
    BlockIndex at = allocator_.segment(segment).first;
    while (at != kNoIndex && allocator_.block(at).address < final_segment.address) at = allocator_.block(at).next;
    for (std::size_t number = begin; number < end && at != kNoIndex;) {
      const FinalBlock& expected = recording_.trace.final_blocks[number];
      const TorchBlock& block = allocator_.block(at);
      const bool same_place = block.address == expected.address && block.size_bytes == expected.size_bytes;
      if (same_place && state_of(block) == expected.state && block.state != TorchBlock::State::kUnmapped)
        ++replay.end_blocks_exact;
      if (block.address <= expected.address) at = block.next;
      if (expected.address <= block.address) ++number;
    }
  }
}

void TorchProof::mismatch(std::uint64_t event, std::string what) {
  if (result_.replay.mismatches.size() < kMismatchesKept) result_.replay.mismatches.push_back({event, std::move(what)});
}

void TorchProof::on_alloc(std::size_t at) {
  const Event& event = events_[at];
  if (!recording_.valid(event.allocation) || block_of_[event.allocation.index()] != kNoIndex) return;
  ++result_.replay.placements;
  fresh_ = kNoIndex;
  if (event.size_bytes > kTorchLargestRequest) {
    if (!run_.empty()) explain_run(at);
    mismatch(at, fmt::format("alloc of {} bytes: beyond any device", event.size_bytes));
    return;
  }
  const std::uint64_t rounded = allocator_.round(event.size_bytes);
  const bool is_small = rounded <= kTorchSmallRequest;
  std::uint32_t arena = recording_.arena(event);
  const bool had_run = !run_.empty();
  if (had_run)
    explain_run(at);
  else
    allocator_.note_search(allocator_.list_for(arena, is_small, event.stream));

  BlockIndex found = kNoIndex;
  if (fresh_ == kNoIndex) {
    if (private_segments_) arena = arena_at(event, arena);
    const ListIndex list = allocator_.list_for(arena, is_small, event.stream);
    found = allocator_.find(list, rounded);
    // A request that was refused and tried again does not search again: it grows into what the flush left.
    const bool may_be_retry = waits_ended_ || (had_run && flushed_in_run_);
    if (found == kNoIndex || (may_be_retry && allocator_.block(found).address != event.address)) {
      fresh_ = obtain_mapped(list, rounded);
      if (fresh_ != kNoIndex && found != kNoIndex && allocator_.block(fresh_).address != event.address) {
        allocator_.return_new(fresh_);
        fresh_ = kNoIndex;
      }
    }
    const bool wrong = fresh_ == kNoIndex && (found == kNoIndex || allocator_.block(found).address != event.address);
    if (wrong && may_hide_) found = infer_private(event, list, rounded, found);
  }
  const BlockIndex predicted = fresh_ != kNoIndex ? fresh_ : found;
  BlockIndex& block = block_of_[event.allocation.index()];
  if (predicted != kNoIndex && allocator_.block(predicted).address == event.address) {
    block = predicted;
    if (fresh_ != kNoIndex)
      allocator_.claim_new(predicted, rounded, event.allocation);
    else
      allocator_.claim(predicted, rounded, event.allocation);
    note_arena(event, allocator_.arena_of(allocator_.block(predicted).list));
    ++result_.replay.exact;
    note_held(event.allocation);
    return;
  }
  mismatch(at, predicted == kNoIndex ? fmt::format("alloc of {} bytes: model takes new memory, recording {:#x}",
                                                   event.size_bytes, event.address)
                                     : fmt::format("alloc of {} bytes: model {:#x}, recording {:#x}", event.size_bytes,
                                                   allocator_.block(predicted).address, event.address));
  if (fresh_ != kNoIndex) allocator_.return_new(fresh_);
  block = allocator_.force(event.address, rounded, event.allocation);
  note_held(event.allocation);
}

void TorchProof::note_held(AllocationId id) {
  const BlockIndex block = block_of_[id.index()];
  if (held_bytes_ != nullptr && block != kNoIndex && id.index() < held_bytes_->size())
    (*held_bytes_)[id.index()] = allocator_.block(block).size_bytes;
}

void TorchProof::on_free(const Event& event) {
  if (!recording_.valid(event.allocation)) return;
  const BlockIndex index = block_of_[event.allocation.index()];
  if (index == kNoIndex) return;
  const TorchBlock& block = allocator_.block(index);
  if (block.allocation != event.allocation) return;
  if (event.phase() == FreePhase::kRequested) {
    if (block.state == TorchBlock::State::kAllocated) allocator_.request_free(index);
    return;
  }
  if (block.state == TorchBlock::State::kPending)
    allocator_.complete_free(index);
  else if (block.state == TorchBlock::State::kAllocated)
    allocator_.free_now(index);
}

void TorchProof::on_failed(std::size_t at) {
  const Event& event = events_[at];
  fresh_ = kNoIndex;
  const bool had_run = !run_.empty();
  if (had_run) explain_run(at);
  if (event.size_bytes > kTorchLargestRequest) return;
  const ListIndex list =
      allocator_.list_for(recording_.arena(event), event.size_bytes <= kTorchSmallRequest, event.stream);
  if (!had_run) allocator_.note_search(list);
  if (fresh_ != kNoIndex) {
    allocator_.return_new(fresh_);
    mismatch(at, fmt::format("failed alloc of {} bytes: the recording took memory for it", event.size_bytes));
  } else if (!waits_ended_ && allocator_.find(list, event.size_bytes) != kNoIndex) {
    mismatch(at, fmt::format("failed alloc of {} bytes: the model has a block for it", event.size_bytes));
  }
  if (!event.has(kHasDeviceFree)) return;
  // A driver with too little left for a segment shows how much it had. One with enough left was not asked: the program's own limit refused, and
  // all that is sure is that what was reserved at most was allowed (finish() sees to that).
  const bool driver_full = event.address < allocator_.segment_bytes(event.size_bytes);
  const std::uint64_t budget = allocator_.reserved_bytes() + (driver_full ? event.address : 0);
  std::optional<std::uint64_t>& known = result_.findings.budget_bytes;
  known = known ? std::min(*known, budget) : budget;
}

// The arena whose segment holds the recorded address, where that is a private one.
std::uint32_t TorchProof::arena_at(const Event& event, std::uint32_t tagged) const {
  if (tagged != 0) return tagged;
  const SegmentIndex segment = allocator_.segment_at(event.address);
  return segment == kNoIndex ? tagged : allocator_.arena_of(allocator_.segment(segment).list);
}

void TorchProof::note_arena(const Event& event, std::uint32_t arena) {
  if (arena != recording_.arena(event)) result_.findings.moved.emplace_back(event.allocation, arena);
}

std::uint32_t TorchProof::hidden_arena(ListIndex list, std::uint64_t rounded) {
  const SegmentOwner owner = allocator_.owner_of(list);
  for (auto at = hidden_arenas_.rbegin(); at != hidden_arenas_.rend(); ++at) {
    if (allocator_.find(allocator_.list_for(*at, owner.is_small, owner.stream), rounded) == kNoIndex) return *at;
  }
  if (hidden_arenas_.size() >= kHiddenArenas) return hidden_arenas_.back();
  hidden_arenas_.push_back(allocator_.add_arena(true));
  return hidden_arenas_.back();
}

void TorchProof::hide(SegmentIndex segment, std::uint32_t arena) {
  work_left_ -= std::min<std::uint64_t>(work_left_, allocator_.move_segment(segment, arena));
  private_segments_ = true;
  ++result_.replay.inferred_private_segments;
}

// The rules of the supposed pool lead elsewhere. Either the better blocks lie in private segments, or the recorded one does.
BlockIndex TorchProof::infer_private(const Event& event, ListIndex list, std::uint64_t rounded, BlockIndex predicted) {
  const auto hideable = [&](SegmentIndex segment) {
    return segment != kNoIndex && !allocator_.segment(segment).pool_known && !allocator_.segment(segment).expandable();
  };
  const FreeIndex& index = allocator_.index_of(list);
  std::vector<SegmentIndex> suspects;
  int passed = 0;
  for (FreeIndex::Cursor at = index.first_at_least(rounded);
       at.at != nullptr && suspects.size() <= kSuspects && ++passed < kSearchedPast; at = index.next(at)) {
    if (at.at->address == event.address) {
      const std::uint32_t arena = hidden_arena(list, rounded);
      for (const SegmentIndex segment : suspects) hide(segment, arena);
      return allocator_.find(list, rounded);
    }
    const SegmentIndex segment = allocator_.block(at.at->block).segment;
    if (!hideable(segment)) break;
    if (std::find(suspects.begin(), suspects.end(), segment) == suspects.end()) suspects.push_back(segment);
  }
  const SegmentIndex recorded = allocator_.segment_at(event.address);
  if (!hideable(recorded) || allocator_.segment(recorded).list != list) return predicted;
  const std::uint32_t from = allocator_.arena_of(list);
  const SegmentOwner owner = allocator_.owner_of(list);
  const std::uint32_t alone = scratch_arena();
  if (!afford(1)) return predicted;
  work_left_ -= std::min<std::uint64_t>(work_left_, 2 * allocator_.move_segment(recorded, alone));
  const BlockIndex found = allocator_.find(allocator_.list_for(alone, owner.is_small, owner.stream), rounded);
  if (found == kNoIndex || allocator_.block(found).address != event.address) {
    allocator_.move_segment(recorded, from);
    return predicted;
  }
  hide(recorded, hidden_arena(list, rounded));
  return allocator_.find(allocator_.segment(recorded).list, rounded);
}

std::uint32_t TorchProof::scratch_arena() {
  if (!scratch_arena_) scratch_arena_ = allocator_.add_arena(true);
  return *scratch_arena_;
}

TorchProofResult prove_torch(const TorchRecording& recording, const RecordedTorchSettings& recorded,
                             std::vector<std::uint64_t>* held_bytes) {
  return TorchProof(recording, recorded, held_bytes).run();
}

}  // namespace faultline
