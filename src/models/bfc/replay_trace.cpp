#include "models/bfc/replay_trace.h"

#include "trace/validate.h"

namespace faultline {

BfcReplayTrace::BfcReplayTrace(const BfcRecording& recording)
    : ReplayedTrace(recording.trace, recording.largest_allocation), recording_(recording) {}

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
  append(event);
}

void BfcReplayTrace::region_returned(std::uint32_t pool, ByteRange region) {
  Event event = region_event(EventKind::kFree, pool, region);
  event.allocation = region_ids_[region.begin];
  append(event);
}

void BfcReplayTrace::copy_preexisting(std::size_t count) {
  for (std::size_t at = 0; at < count; ++at) {
    Event event = recording_.trace.events[at];
    const bool is_region = recording_.from_driver(event);
    if (event.kind != EventKind::kAlloc || (!is_region && recording_.pool_of(event) == kNoPool)) continue;
    const Known* mine = known(event.allocation);
    if (mine == nullptr || mine->id.value != 0) continue;
    event.allocation = keeps_its_place(event);
    if (is_region) region_ids_[event.address] = event.allocation;
    append(event);
  }
  trace().preexisting_count = static_cast<std::uint32_t>(trace().events.size());
}

void BfcReplayTrace::other(const Event& recorded) {
  const bool is_replaced = recorded.device != recording_.device || recording_.from_driver(recorded);
  if (!happens_on_device(recorded.kind) || !is_replaced) copied(recorded);
}

Trace BfcReplayTrace::finish(const std::vector<BfcPool>& pools) {
  Trace& trace = this->trace();
  for (std::uint32_t number = 0; number < pools.size(); ++number) {
    const BfcPool& pool = pools[number];
    const Heap& heap = trace.heaps[recording_.pools[number].heap.index()];
    for (const auto& [address, region] : pool.regions()) {
      FinalSegment segment;
      segment.address = address;
      segment.size_bytes = region.size_bytes;
      segment.device = recording_.device;
      segment.heap = recording_.pools[number].heap;
      segment.first_block = static_cast<std::uint32_t>(trace.final_blocks.size());
      for (BfcChunkIndex at = region.first; at != kNoChunk; at = pool.chunk(at).next) {
        const BfcChunk& chunk = pool.chunk(at);
        const Known* mine = chunk.in_use() ? known(chunk.allocation) : nullptr;
        trace.final_blocks.push_back({chunk.address, chunk.size_bytes, chunk.requested_bytes,
                                      mine != nullptr ? mine->stack : StackId{},
                                      chunk.in_use() ? FinalBlock::State::kActive : FinalBlock::State::kFree});
        ++segment.block_count;
      }
      trace.final_segments.push_back(segment);
    }
    const auto state = [&](std::string_view what, std::string value) {
      trace.properties[bfc_property(heap.name, what)] = std::move(value);
    };
    state("growth", pool.settings().growth ? "true" : "false");
    state("garbage_collection", pool.settings().garbage_collection ? "true" : "false");
    if (pool.settings().limit_bytes < kBfcNoLimit) state("limit", std::to_string(pool.settings().limit_bytes));
  }
  return std::move(trace);
}

}  // namespace faultline
