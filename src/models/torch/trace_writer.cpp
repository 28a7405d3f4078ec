#include "models/torch/trace_writer.h"

#include "models/copied_tables.h"
#include "models/torch/final_state.h"
#include "trace/validate.h"

namespace faultline {

TraceWriter::TraceWriter(const TorchRecording& recording, TorchDriver& below)
    : NotingDriver(below, recording.device, recording.driver_heap),
      recording_(recording),
      trace_(with_tables_of(recording.trace)) {
  known_.resize(recording.largest_allocation + std::size_t{1});
}

HeapId TraceWriter::heap_of(std::uint32_t arena) const {
  return recording_.heap_of_arena[arena < recording_.heap_of_arena.size() ? arena : 0];
}

void TraceWriter::copy_preexisting(std::size_t count) {
  for (std::size_t at = 0; at < count; ++at) {
    Event event = recording_.trace.events[at];
    if (recording_.role(event) == HeapRole::kElsewhere) continue;
    if (recording_.valid(event.allocation)) {
      Known& known = known_[event.allocation.index()];
      if (event.kind == EventKind::kAlloc)
        known = {new_id(), event.address, event.address, event.stack, event.size_bytes};
      if (event.kind == EventKind::kAlloc && recording_.role(event) == HeapRole::kDriver)
        know_segment(event.address, known.id);
      event.allocation = known.id;
    }
    trace_.events.push_back(event);
  }
  trace_.preexisting_count = static_cast<std::uint32_t>(trace_.events.size());
}

void TraceWriter::allocated(const Event& recorded, std::uint64_t address) {
  Event event = recorded;
  event.address = address;
  event.bits = 0;
  event.set(kAddressKnown);
  event.allocation = new_id();
  known_[recorded.allocation.index()] = {event.allocation, recorded.address, address, recorded.stack,
                                         recorded.size_bytes};
  trace_.events.push_back(event);
}

void TraceWriter::freed(const Event& recorded, FreePhase phase) {
  const Known& known = known_[recorded.allocation.index()];
  Event event = recorded;
  event.allocation = known.id;
  event.address = known.replayed;
  event.bits = 0;
  event.set_phase(phase);
  event.set(kAddressKnown);
  trace_.events.push_back(event);
}

void TraceWriter::completed_early(AllocationId recorded) {
  Event event = cause();
  event.kind = EventKind::kFree;
  event.extra = 0;
  event.heap = recording_.heap_of_arena[0];
  event.allocation = recorded;
  event.size_bytes = known_[recorded.index()].size_bytes;
  freed(event, FreePhase::kCompleted);
}

void TraceWriter::failed(const Event& recorded) {
  Event event = recorded;
  if (recorded.kind == EventKind::kAlloc) {
    event.kind = EventKind::kAllocFailed;
    event.allocation = {};
    event.extra = 0;
    event.address = 0;
    event.bits = 0;
  }
  trace_.events.push_back(event);
}

void TraceWriter::served_and_dropped(const Event& recorded, std::uint64_t address) {
  Event event = recorded;
  event.kind = EventKind::kAlloc;
  event.address = address;
  event.bits = 0;
  event.set(kAddressKnown);
  event.allocation = new_id();
  trace_.events.push_back(event);
  event.kind = EventKind::kFree;
  trace_.events.push_back(event);
}

void TraceWriter::other(const Event& recorded) {
  Event event = recorded;
  const bool makes_one = makes_allocation(event.kind);
  const bool ends_one = ends_allocation(event.kind);
  if (happens_on_device(event.kind) &&
      (event.device != recording_.device || recording_.role(event) == HeapRole::kDriver))
    return;
  if (recording_.valid(event.allocation)) {
    Known& known = known_[event.allocation.index()];
    if (makes_one) known = {new_id(), event.address, event.address, event.stack, event.size_bytes};
    if (ends_one && known.id.value == 0) return;
    if (known.id.value != 0 && event.address != 0) event.address += known.replayed - known.recorded;
    event.allocation = known.id;
  } else if (makes_one) {
    return;
  }
  trace_.events.push_back(event);
}

void TraceWriter::write_final_state(const TorchAllocator& allocator) {
  TorchFinalState state = final_state(
      allocator, recording_.device, [this](std::uint32_t arena) { return heap_of(arena); },
      [this](AllocationId id) { return TorchRequest{known_[id.index()].size_bytes, known_[id.index()].stack}; });
  trace_.final_segments = std::move(state.segments);
  trace_.final_blocks = std::move(state.blocks);
}

Trace TraceWriter::finish(const TorchAllocator& allocator, const TorchSettings& settings) {
  write_final_state(allocator);
  const std::string text = settings.text();
  trace_.properties["torch.alloc_conf"] = text == "default" ? "" : text;
  for (const char* stale : {"torch.max_split_size", "torch.garbage_collection_threshold", "torch.expandable_segments",
                            "torch.roundup_power2_divisions"}) {
    trace_.properties.erase(stale);
  }
  return std::move(trace_);
}

}  // namespace faultline
