#include "models/bfc/replay_trace.h"

#include "models/copied_tables.h"
#include "trace/validate.h"

namespace faultline {

BfcReplayTrace::BfcReplayTrace(const BfcRecording& recording)
    : recording_(recording), trace_(with_tables_of(recording.trace)) {
  known_.resize(recording.largest_allocation + std::size_t{1});
}

Event BfcReplayTrace::region_event(EventKind kind, std::uint32_t pool, ByteRange region) const {
  Event event;
  event.kind = kind;
  event.time_ns = cause_.time_ns;
  event.thread = cause_.thread;
  event.stack = cause_.stack;
  event.stream = cause_.stream;
  event.device = recording_.device;
  event.heap = recording_.pools[pool].driver_heap;
  event.address = region.begin;
  event.size_bytes = region.size();
  event.set(kAddressKnown);
  return event;
}

void BfcReplayTrace::region_taken(std::uint32_t pool, ByteRange region) {
  Event event = region_event(EventKind::kAlloc, pool, region);
  event.allocation = region_ids_[region.begin] = new_id();
  trace_.events.push_back(event);
}

void BfcReplayTrace::region_returned(std::uint32_t pool, ByteRange region) {
  Event event = region_event(EventKind::kFree, pool, region);
  event.allocation = region_ids_[region.begin];
  trace_.events.push_back(event);
}

void BfcReplayTrace::copy_preexisting(std::size_t count) {
  for (std::size_t at = 0; at < count; ++at) {
    Event event = recording_.trace.events[at];
    const bool is_region = recording_.from_driver(event);
    if (event.kind != EventKind::kAlloc || (!is_region && recording_.pool_of(event) == kNoPool)) continue;
    Known* mine = known(event.allocation);
    if (mine == nullptr || mine->id.value != 0) continue;
    *mine = {new_id(), event.address, event.address};
    if (is_region) region_ids_[event.address] = mine->id;
    event.allocation = mine->id;
    trace_.events.push_back(event);
  }
  trace_.preexisting_count = static_cast<std::uint32_t>(trace_.events.size());
}

void BfcReplayTrace::allocated(const Event& recorded, std::uint64_t address) {
  Event event = recorded;
  event.address = address;
  event.bits = 0;
  event.set(kAddressKnown);
  event.allocation = new_id();
  known_[recorded.allocation.index()] = {event.allocation, recorded.address, address};
  trace_.events.push_back(event);
}

void BfcReplayTrace::freed(const Event& recorded) {
  const Known& mine = known_[recorded.allocation.index()];
  Event event = recorded;
  event.allocation = mine.id;
  event.address = mine.replayed;
  event.bits = 0;
  event.set(kAddressKnown);
  trace_.events.push_back(event);
}

void BfcReplayTrace::failed(const Event& recorded) {
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

void BfcReplayTrace::served_and_dropped(const Event& recorded, std::uint64_t address) {
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

void BfcReplayTrace::other(const Event& recorded) {
  Event event = recorded;
  if (happens_on_device(event.kind) && (event.device != recording_.device || recording_.from_driver(event))) return;
  Known* mine = known(event.allocation);
  if (makes_allocation(event.kind)) {
    if (mine == nullptr || mine->id.value != 0) return;
    *mine = {new_id(), event.address, event.address};
  }
  if (mine != nullptr) {
    if (ends_allocation(event.kind) && mine->id.value == 0) return;
    if (mine->id.value != 0 && event.address != 0) event.address += mine->replayed - mine->recorded;
    event.allocation = mine->id;
  }
  trace_.events.push_back(event);
}

Trace BfcReplayTrace::finish(const std::vector<BfcPool>& pools) {
  std::vector<const Event*> birth(trace_.allocation_count + std::size_t{1});
  for (const Event& event : trace_.events) {
    if (event.kind == EventKind::kAlloc) birth[event.allocation.index()] = &event;
  }
  for (std::uint32_t number = 0; number < pools.size(); ++number) {
    const BfcPool& pool = pools[number];
    const Heap& heap = trace_.heaps[recording_.pools[number].heap.index()];
    for (const auto& [address, region] : pool.regions()) {
      FinalSegment segment;
      segment.address = address;
      segment.size_bytes = region.size_bytes;
      segment.device = recording_.device;
      segment.heap = recording_.pools[number].heap;
      segment.first_block = static_cast<std::uint32_t>(trace_.final_blocks.size());
      for (BfcChunkIndex at = region.first; at != kNoChunk; at = pool.chunk(at).next) {
        const BfcChunk& chunk = pool.chunk(at);
        const Known* mine = chunk.in_use() ? known(chunk.allocation) : nullptr;
        trace_.final_blocks.push_back({chunk.address, chunk.size_bytes, chunk.requested_bytes,
                                       mine != nullptr ? birth[mine->id.index()]->stack : StackId{},
                                       chunk.in_use() ? FinalBlock::State::kActive : FinalBlock::State::kFree});
        ++segment.block_count;
      }
      trace_.final_segments.push_back(segment);
    }
    const auto state = [&](std::string_view what, std::string value) {
      trace_.properties[bfc_property(heap.name, what)] = std::move(value);
    };
    state("growth", pool.settings().growth ? "true" : "false");
    state("garbage_collection", pool.settings().garbage_collection ? "true" : "false");
    if (pool.settings().limit_bytes < kBfcNoLimit) state("limit", std::to_string(pool.settings().limit_bytes));
  }
  return std::move(trace_);
}

}  // namespace faultline
