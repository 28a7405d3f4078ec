#include "models/torch/trace_writer.h"

#include "models/torch/final_state.h"
#include "trace/validate.h"

namespace faultline {

TraceWriter::TraceWriter(const TorchRecording& recording, TorchDriver& below)
    : NotingDriver(below, recording.device, recording.driver_heap),
      recording_(recording),
      replayed_(recording.trace, recording.largest_allocation) {}

HeapId TraceWriter::heap_of(std::uint32_t arena) const {
  return recording_.heap_of_arena[arena < recording_.heap_of_arena.size() ? arena : 0];
}

void TraceWriter::copy_preexisting(std::size_t count) {
  for (std::size_t at = 0; at < count; ++at) {
    Event event = recording_.trace.events[at];
    if (recording_.role(event) == HeapRole::kElsewhere) continue;
    if (recording_.valid(event.allocation)) {
      if (event.kind == EventKind::kAlloc) {
        const AllocationId id = replayed_.keeps_its_place(event);
        if (recording_.role(event) == HeapRole::kDriver) know_segment(event.address, id);
      }
      event.allocation = replayed_.known(event.allocation)->id;
    }
    replayed_.append(event);
  }
  replayed_.trace().preexisting_count = static_cast<std::uint32_t>(replayed_.trace().events.size());
}

void TraceWriter::completed_early(AllocationId recorded) {
  Event event = cause();
  event.kind = EventKind::kFree;
  event.extra = 0;
  event.heap = recording_.heap_of_arena[0];
  event.allocation = recorded;
  event.size_bytes = replayed_.known(recorded)->size_bytes;
  freed(event, FreePhase::kCompleted);
}

void TraceWriter::other(const Event& recorded) {
  const bool is_replaced = recorded.device != recording_.device || recording_.role(recorded) == HeapRole::kDriver;
  if (!happens_on_device(recorded.kind) || !is_replaced) replayed_.copied(recorded);
}

void TraceWriter::write_final_state(const TorchAllocator& allocator) {
  TorchFinalState state = final_state(
      allocator, recording_.device, [this](std::uint32_t arena) { return heap_of(arena); },
      [this](AllocationId id) {
        const ReplayedTrace::Known& known = *replayed_.known(id);
        return TorchRequest{known.size_bytes, known.stack};
      });
  replayed_.trace().final_segments = std::move(state.segments);
  replayed_.trace().final_blocks = std::move(state.blocks);
}

Trace TraceWriter::finish(const TorchAllocator& allocator, const TorchSettings& settings) {
  write_final_state(allocator);
  const std::string text = settings.text();
  Trace& trace = replayed_.trace();
  trace.properties["torch.alloc_conf"] = text == "default" ? "" : text;
  for (const char* stale : {"torch.max_split_size", "torch.garbage_collection_threshold", "torch.expandable_segments",
                            "torch.roundup_power2_divisions"}) {
    trace.properties.erase(stale);
  }
  return std::move(trace);
}

}  // namespace faultline
