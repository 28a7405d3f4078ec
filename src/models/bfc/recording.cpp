#include "models/bfc/recording.h"

#include <algorithm>
#include <charconv>

#include "base/hash.h"
#include "trace/framework.h"

namespace faultline {
namespace {

std::optional<std::uint64_t> whole(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// "268435456", or "268433408..268438528" where it was printed rounded.
std::optional<ByteInterval> interval(std::string_view text) {
  const std::size_t dots = text.find("..");
  const std::optional<std::uint64_t> least = whole(text.substr(0, dots));
  const std::optional<std::uint64_t> most = dots == std::string_view::npos ? least : whole(text.substr(dots + 2));
  if (!least || !most || *least > *most || *least == 0 || *most > kBfcNoLimit) return std::nullopt;
  return ByteInterval{*least, *most};
}

StatedPool stated(const Trace& trace, const Heap& heap) {
  const auto text = [&](std::string_view what) -> std::string_view {
    const auto at = trace.properties.find(bfc_property(heap.name, what));
    return at == trace.properties.end() ? std::string_view{} : std::string_view(at->second);
  };
  const auto truth = [&](std::string_view what) -> std::optional<bool> {
    const std::string_view value = text(what);
    if (value != "true" && value != "false") return std::nullopt;
    return value == "true";
  };
  StatedPool pool{interval(text("limit")), truth("growth"), truth("garbage_collection"), whole(text("next_region"))};
  if (pool.next_region_bytes && (*pool.next_region_bytes == 0 || *pool.next_region_bytes > kBfcNoLimit))
    pool.next_region_bytes.reset();
  return pool;
}

}  // namespace

std::string bfc_property(std::string_view pool, std::string_view what) {
  return "bfc." + std::string(pool) + "." + std::string(what);
}

std::uint32_t BfcRecording::pool_above(HeapId driver_heap) const {
  for (std::uint32_t pool = 0; pool < pools.size(); ++pool) {
    if (pools[pool].driver_heap == driver_heap) return pool;
  }
  return kNoPool;
}

std::uint32_t BfcRecording::main_pool() const {
  std::vector<std::uint64_t> asked(pools.size());
  for (const Event& event : trace.events) {
    const std::uint32_t pool = pool_of(event);
    if (pool != kNoPool && event.kind == EventKind::kAlloc)
      asked[pool] += std::min(event.size_bytes, kBfcLargestRequest);
  }
  return static_cast<std::uint32_t>(std::max_element(asked.begin(), asked.end()) - asked.begin());
}

std::optional<BfcRecording> bfc_recording(const Trace& trace, std::uint16_t device) {
  BfcRecording recording{trace, device, Framework::kTensorFlow, {}, {}, {}, 0};
  recording.pool_of_heap.assign(trace.heaps.size(), kNoPool);
  recording.is_driver.assign(trace.heaps.size(), false);
  for (std::size_t index = 0; index < trace.heaps.size(); ++index) {
    const Heap& heap = trace.heaps[index];
    if (heap.kind != HeapKind::kBfc || heap.device != device) continue;
    recording.pool_of_heap[index] = static_cast<std::uint32_t>(recording.pools.size());
    recording.pools.push_back({HeapId(static_cast<std::uint16_t>(index)), heap.below, stated(trace, heap)});
    if (heap.below.index() < trace.heaps.size() && heap.below.index() != index)
      recording.is_driver[heap.below.index()] = true;
  }
  if (recording.pools.empty()) return std::nullopt;
  if (pools_framework(trace) == Framework::kJax) recording.framework = Framework::kJax;
  const auto bound = static_cast<std::uint32_t>(std::min<std::size_t>(trace.events.size(), trace.allocation_count));
  recording.largest_allocation = bound;
  return recording;
}

void build_start_state(const BfcRecording& recording, std::vector<BfcPool>& pools, std::vector<BfcPlace>& place_of) {
  const Trace& trace = recording.trace;
  // A chunk keeps its size while it is in use: of one that lives to the end the end state tells it.
  // Another device may have the same addresses.
  std::vector<bool> is_elsewhere(trace.final_blocks.size());
  for (const FinalSegment& segment : trace.final_segments) {
    for (std::size_t at = segment.first_block; at < std::size_t{segment.first_block} + segment.block_count; ++at) {
      if (at < is_elsewhere.size() && segment.device != recording.device) is_elsewhere[at] = true;
    }
  }
  HashMap<std::uint64_t, std::uint64_t> held;
  for (std::size_t at = 0; at < trace.final_blocks.size(); ++at) {
    const FinalBlock& block = trace.final_blocks[at];
    if (block.state == FinalBlock::State::kActive && !is_elsewhere[at]) held[block.address] = block.size_bytes;
  }
  std::vector<bool> freed(recording.largest_allocation + std::size_t{1});
  for (const Event& event : trace.events) {
    if (event.kind == EventKind::kFree && recording.valid(event.allocation)) freed[event.allocation.index()] = true;
  }
  const std::size_t count = std::min<std::size_t>(trace.preexisting_count, trace.events.size());
  for (std::size_t at = 0; at < count; ++at) {
    const Event& event = trace.events[at];
    if (event.kind != EventKind::kAlloc || event.size_bytes > kBfcLargestRequest) continue;
    if (recording.from_driver(event)) {
      const std::uint32_t pool = recording.pool_above(event.heap);
      if (pool != kNoPool) pools[pool].add_region(ByteRange::of(event.address, event.size_bytes));
      continue;
    }
    const std::uint32_t pool = recording.pool_of(event);
    if (pool == kNoPool || !recording.valid(event.allocation) || place_of[event.allocation.index()].known()) continue;
    const auto known = held.find(event.address);
    const std::uint64_t size =
        known != held.end() && !freed[event.allocation.index()] ? known->second : bfc_rounded(event.size_bytes);
    place_of[event.allocation.index()] = {pool,
                                          pools[pool].force(event.address, size, event.size_bytes, event.allocation)};
  }
  for (std::uint32_t pool = 0; pool < pools.size(); ++pool) {
    if (recording.pools[pool].stated.next_region_bytes)
      pools[pool].set_next_region(*recording.pools[pool].stated.next_region_bytes);
  }
}

}  // namespace faultline
