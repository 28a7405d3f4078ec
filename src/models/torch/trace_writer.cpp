#include "models/torch/trace_writer.h"

#include <algorithm>

namespace faultline {

TraceWriter::TraceWriter(const TorchRecording& recording, TorchDriver& below) : recording_(recording), below_(below) {
  const Trace& from = recording.trace;
  for (std::size_t at = 0; at < from.strings.size(); ++at) trace_.strings.intern(from.strings.at(StringId(static_cast<std::uint32_t>(at))));
  trace_.stacks = from.stacks;
  trace_.tensors = from.tensors;
  trace_.heaps = from.heaps;
  trace_.streams = from.streams;
  trace_.devices = from.devices;
  trace_.capabilities = from.capabilities | kAddresses;
  trace_.source_kind = from.source_kind;
  trace_.source_path = from.source_path;
  trace_.source_events = from.source_events;
  trace_.properties = from.properties;
  trace_.lost = from.lost;
  trace_.events.reserve(from.events.size());
  known_.resize(recording.largest_allocation + std::size_t{1});
}

HeapId TraceWriter::heap_of(std::uint32_t arena) const { return recording_.heap_of_arena[arena < recording_.heap_of_arena.size() ? arena : 0]; }

void TraceWriter::copy_preexisting(std::size_t count) {
  for (std::size_t at = 0; at < count; ++at) {
    Event event = recording_.trace.events[at];
    if (recording_.role(event) == HeapRole::kElsewhere) continue;
    if (recording_.valid(event.allocation)) {
      Known& known = known_[event.allocation.index()];
      if (event.kind == EventKind::kAlloc) known = {new_id(), event.address, event.address, event.stack, event.size_bytes};
      if (event.kind == EventKind::kAlloc && recording_.role(event) == HeapRole::kDriver) segment_ids_[event.address] = known.id;
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
  known_[recorded.allocation.index()] = {event.allocation, recorded.address, address, recorded.stack, recorded.size_bytes};
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
  Event event = cause_;
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
  const bool makes_one = event.kind == EventKind::kAlloc || event.kind == EventKind::kHostPin;
  const bool ends_one = event.kind == EventKind::kFree || event.kind == EventKind::kHostUnpin;
  if (makes_one || ends_one || event.kind == EventKind::kMap || event.kind == EventKind::kUnmap || event.kind == EventKind::kAllocFailed) {
    if (event.device != recording_.device || recording_.role(event) == HeapRole::kDriver) return;
  }
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

Event TraceWriter::driver_event(EventKind kind, ByteRange range, const SegmentOwner& owner) const {
  Event event;
  event.time_ns = cause_.time_ns;
  event.stack = cause_.stack;
  event.thread = cause_.thread;
  event.kind = kind;
  event.address = range.begin;
  event.size_bytes = range.size();
  event.stream = owner.stream;
  event.device = recording_.device;
  event.heap = recording_.driver_heap;
  event.set(kAddressKnown);
  return event;
}

std::optional<ByteRange> TraceWriter::take(std::uint64_t size_bytes, const SegmentOwner& owner) {
  const std::optional<ByteRange> range = below_.take(size_bytes, owner);
  if (!range) return range;
  Event event = driver_event(EventKind::kAlloc, *range, owner);
  event.allocation = new_id();
  segment_ids_[range->begin] = event.allocation;
  trace_.events.push_back(event);
  return range;
}

void TraceWriter::give_back(ByteRange segment, const SegmentOwner& owner) {
  below_.give_back(segment, owner);
  Event event = driver_event(EventKind::kFree, segment, owner);
  event.allocation = segment_ids_[segment.begin];
  trace_.events.push_back(event);
}

bool TraceWriter::map(ByteRange range, const SegmentOwner& owner) {
  if (!below_.map(range, owner)) return false;
  trace_.events.push_back(driver_event(EventKind::kMap, range, owner));
  return true;
}

void TraceWriter::unmap(ByteRange range, const SegmentOwner& owner) {
  below_.unmap(range, owner);
  trace_.events.push_back(driver_event(EventKind::kUnmap, range, owner));
}

void TraceWriter::write_final_state(const TorchAllocator& allocator) {
  using State = TorchBlock::State;
  std::vector<SegmentIndex> order;
  for (SegmentIndex segment = 0; segment < allocator.segment_count(); ++segment) {
    if (allocator.segment(segment).live) order.push_back(segment);
  }
  std::sort(order.begin(), order.end(), [&](SegmentIndex a, SegmentIndex b) { return allocator.segment(a).address < allocator.segment(b).address; });
  for (const SegmentIndex index : order) {
    const TorchSegment& segment = allocator.segment(index);
    const SegmentOwner owner = allocator.owner_of(segment.list);
    bool open = false;
    for (BlockIndex at = segment.first; at != kNoIndex; at = allocator.block(at).next) {
      const TorchBlock& block = allocator.block(at);
      if (block.state == State::kUnmapped) {
        open = false;
        continue;
      }
      if (!open) {
        trace_.final_segments.push_back({block.address, 0, recording_.device, heap_of(owner.arena), owner.stream, {}, owner.is_small, segment.expandable(),
                                         static_cast<std::uint32_t>(trace_.final_blocks.size()), 0});
        open = true;
      }
      const Known* known = block.allocation.value != 0 ? &known_[block.allocation.index()] : nullptr;
      const auto state = block.state == State::kAllocated ? FinalBlock::State::kActive
                         : block.state == State::kPending ? FinalBlock::State::kPendingFree
                                                          : FinalBlock::State::kFree;
      trace_.final_blocks.push_back({block.address, block.size_bytes, known != nullptr ? known->size_bytes : 0, known != nullptr ? known->stack : StackId{}, state});
      trace_.final_segments.back().size_bytes += block.size_bytes;
      ++trace_.final_segments.back().block_count;
    }
  }
}

Trace TraceWriter::finish(const TorchAllocator& allocator, const TorchSettings& settings) {
  write_final_state(allocator);
  const std::string text = settings.text();
  trace_.properties["torch.alloc_conf"] = text == "default" ? "" : text;
  for (const char* stale : {"torch.max_split_size", "torch.garbage_collection_threshold", "torch.expandable_segments", "torch.roundup_power2_divisions"}) {
    trace_.properties.erase(stale);
  }
  return std::move(trace_);
}

}  // namespace faultline
