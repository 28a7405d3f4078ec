#include "sources/bfc_dump/dump_trace.h"

#include <algorithm>
#include <bit>
#include <string>

#include "sources/pool_names.h"
#include "trace/host_memory.h"

namespace faultline {
namespace {

constexpr std::uint64_t kUnit = 256, kFirstRegion = std::uint64_t{2} << 20;

std::string written(ByteInterval bytes) {
  return bytes.min == bytes.max ? std::to_string(bytes.min)
                                : std::to_string(bytes.min) + ".." + std::to_string(bytes.max);
}

Device& device_at(Trace& trace, std::uint16_t index) {
  const auto known = std::find_if(trace.devices.begin(), trace.devices.end(),
                                  [&](const Device& device) { return device.index == index; });
  if (known != trace.devices.end()) return *known;
  trace.devices.emplace_back().index = index;
  return trace.devices.back();
}

void add_alloc(Trace& trace, const PoolPlace& place, HeapId heap, std::uint64_t address, std::uint64_t size_bytes,
               std::uint32_t tensor) {
  Event event;
  event.kind = EventKind::kAlloc;
  event.set(kPreexisting);
  event.set(kAddressKnown);
  event.device = place.device;
  event.heap = heap;
  event.address = address;
  event.size_bytes = size_bytes;
  event.extra = tensor;
  event.allocation = AllocationId(++trace.allocation_count);
  trace.events.push_back(event);
}

// What the lines that are missing would have told of: nobody knows whether it was free, so nothing is claimed to fit there.
void add_unread(Trace& trace, const PoolPlace& place, std::uint64_t begin, std::uint64_t end) {
  if (begin >= end) return;
  Tensor tensor;
  tensor.op = trace.strings.intern("(lines of the dump that are missing)");
  add_alloc(trace, place, place.heap, begin, end - begin, trace.tensors.intern(tensor).value);
  trace.final_blocks.push_back({begin, end - begin, end - begin, StackId(), FinalBlock::State::kActive});
}

void add_region(Trace& trace, const PoolDump& dump, const DumpedRegion& region, const PoolPlace& place) {
  FinalSegment segment;
  segment.address = region.address;
  segment.size_bytes = region.size_bytes;
  segment.device = place.device;
  segment.heap = place.heap;
  segment.first_block = static_cast<std::uint32_t>(trace.final_blocks.size());
  std::uint64_t end = region.address;
  for (std::uint32_t at = region.first_chunk; at < region.first_chunk + region.chunk_count; ++at) {
    const DumpedChunk& chunk = dump.chunks[at];
    add_unread(trace, place, end, chunk.address);
    end = chunk.address + chunk.size_bytes;
    const std::uint64_t requested = chunk.requested_bytes != 0 && chunk.requested_bytes <= chunk.size_bytes
                                        ? chunk.requested_bytes
                                        : chunk.size_bytes;
    trace.final_blocks.push_back({chunk.address, chunk.size_bytes, chunk.in_use ? requested : 0, StackId(),
                                  chunk.in_use ? FinalBlock::State::kActive : FinalBlock::State::kFree});
    if (!chunk.in_use) continue;
    std::uint32_t tensor = 0;
    if (chunk.op != 0) {
      Tensor made;
      made.op = trace.strings.intern(dump.ops[chunk.op]);
      tensor = trace.tensors.intern(made).value;
    }
    add_alloc(trace, place, place.heap, chunk.address, requested, tensor);
  }
  add_unread(trace, place, end, region.address + region.size_bytes);
  segment.block_count = static_cast<std::uint32_t>(trace.final_blocks.size()) - segment.first_block;
  trace.final_segments.push_back(segment);
}

// The best that the dump tells of all chunks in use.
std::optional<ByteInterval> in_use_of(const PoolDump& dump) {
  if (dump.in_use) return dump.in_use;
  if (const auto sum = dump.in_use_by_sizes()) return ByteInterval::exactly(*sum);
  if (dump.in_use_in_all) return dump.in_use_in_all;
  return dump.bins ? std::optional(dump.bins->in_use) : std::nullopt;
}

// The largest of the summary by size, where the map has not all chunks: "4x314572800 2x1048576".
void add_sizes(Trace& trace, const PoolDump& dump) {
  constexpr std::size_t kMostSizes = 16;
  if (dump.sizes.empty() || (dump.has_map() && dump.unread_bytes == 0 && dump.unplaced.max == 0 && !dump.is_open))
    return;
  std::vector<DumpedSize> sizes = dump.sizes;
  const auto bytes = [](const DumpedSize& size) { return size.count * size.size_bytes; };
  std::stable_sort(sizes.begin(), sizes.end(),
                   [&](const DumpedSize& a, const DumpedSize& b) { return bytes(a) > bytes(b); });
  std::string words;
  for (std::size_t at = 0; at < std::min(sizes.size(), kMostSizes); ++at)
    words += (at == 0 ? "" : " ") + std::to_string(sizes[at].count) + "x" + std::to_string(sizes[at].size_bytes);
  trace.properties["bfc." + dump.allocator + ".sizes"] = words;
}

void add_statements(Trace& trace, const PoolDump& dump) {
  const auto state = [&](const char* what, const std::optional<ByteInterval>& bytes) {
    if (bytes) trace.properties["bfc." + dump.allocator + "." + what] = written(*bytes);
  };
  state("limit", dump.limit && dump.limit->min != 0 ? dump.limit : std::nullopt);
  if (dump.next_region && dump.next_region->min == dump.next_region->max && dump.next_region->min != 0)
    state("next_region", dump.next_region);
  state("request", dump.rounded ? std::optional(ByteInterval::exactly(*dump.rounded)) : dump.asked);
  state("refused_region", dump.refused);
  state("base_limit", dump.base_limit);
  if (dump.bar) {
    state("bar.free", ByteInterval::exactly(dump.bar->free));
    state("bar.longest", ByteInterval::exactly(dump.bar->longest));
  }
  if (dump.bins) {
    // less than a unit of each is the rounding of its request, which no chunk is spared
    const ByteInterval rounding{0, dump.bins->chunks_in_use * (kUnit - 1)};
    state("slack", dump.bins->in_use - dump.bins->requested - rounding);
    state("free_by_bins", dump.bins->free);
    state("largest_by_bins", dump.bins->largest_free);
  }
  state("available", dump.available);
  state("in_use", in_use_of(dump));
  state("taken", dump.pool ? dump.pool : dump.bins ? std::optional(dump.bins->bytes) : std::nullopt);
  if (!dump.has_map()) state("largest_free", dump.largest_free);
  state("peak_in_use", dump.peak_in_use);
  if (dump.unread_bytes != 0) state("unread", ByteInterval::exactly(dump.unread_bytes));
  if (dump.unplaced.max != 0) state("unplaced", dump.unplaced);
  if (dump.has_map() && dump.is_open) trace.properties["bfc." + dump.allocator + ".open"] = "true";
  add_sizes(trace, dump);
  if (dump.is_mixed) trace.properties["bfc." + dump.allocator + ".mixed"] = "true";
  if (dump.form != 0) trace.properties["bfc." + dump.allocator + ".form"] = std::to_string(dump.form);
  if (!dump.asked_by.empty()) trace.properties["bfc." + dump.allocator + ".asked_by"] = dump.asked_by;
  const bool knows_requests = std::any_of(dump.chunks.begin(), dump.chunks.end(), [](const DumpedChunk& chunk) {
    return chunk.in_use && chunk.requested_bytes != 0;
  });
  if (knows_requests) trace.properties["bfc." + dump.allocator + ".knows_requests"] = "true";
  const auto is_empty = [&](const DumpedRegion& region) {
    const auto first = dump.chunks.begin() + region.first_chunk;
    return std::none_of(first, first + region.chunk_count, [](const DumpedChunk& chunk) { return chunk.in_use; });
  };
  // One region of the whole limit is what a pool without growth takes; more than one it takes only where it grows.
  std::uint64_t taken = 0;
  for (const DumpedRegion& region : dump.regions) taken += region.size_bytes;
  // Growth begins with 2 MiB and doubles; more than one region has also a pool whose driver refused its limit at once.
  const bool has_grown = std::any_of(dump.regions.begin(), dump.regions.end(), [](const DumpedRegion& region) {
    return region.size_bytes >= kFirstRegion && std::has_single_bit(region.size_bytes);
  });
  const bool all_stated =
      !dump.regions.empty() && std::all_of(dump.regions.begin(), dump.regions.end(),
                                           [](const DumpedRegion& region) { return region.is_stated; });
  if (all_stated && dump.regions.size() > 1 && has_grown)
    trace.properties["bfc." + dump.allocator + ".growth"] = "true";
  else if (all_stated && dump.limit && taken + kUnit > dump.limit->min && taken <= dump.limit->max &&
           !is_empty(dump.regions[0]))
    trace.properties["bfc." + dump.allocator + ".growth"] = "false";
  trace.count("lines of a pool's dump that contradict the others", dump.odd_lines);
  trace.count("lines of a pool's dump that stand there twice", dump.repeated_lines);
  trace.count("bytes of a pool whose lines in the dump are missing", dump.unread_bytes + dump.unplaced.middle());
}

// Regions do not overlap; of two that do the later one cannot be of the same moment.
std::vector<const DumpedRegion*> sound_regions(const PoolDump& dump) {
  std::vector<const DumpedRegion*> regions;
  for (const DumpedRegion& region : dump.regions) {
    if (region.size_bytes <= ~std::uint64_t{0} - region.address) regions.push_back(&region);
  }
  std::stable_sort(regions.begin(), regions.end(),
                   [](const DumpedRegion* a, const DumpedRegion* b) { return a->address < b->address; });
  std::uint64_t end = 0;
  std::erase_if(regions, [&](const DumpedRegion* region) {
    if (region->address < end) return true;
    end = region->address + region->size_bytes;
    return false;
  });
  return regions;
}

}  // namespace

std::vector<PoolPlace> add_pools(Trace& trace, std::span<const PoolDump> dumps) {
  std::uint16_t next_host = 0;
  for (const PoolDump& dump : dumps) {
    if (const auto gpu = gpu_of(dump.allocator))
      next_host = std::max<std::uint16_t>(next_host, static_cast<std::uint16_t>(*gpu + 1));
  }
  std::vector<PoolPlace> places;
  std::vector<HeapId> drivers;
  for (const PoolDump& dump : dumps) {
    const auto gpu = gpu_of(dump.allocator);
    const PoolMemory memory = memory_of(dump.allocator);
    const std::uint16_t index = memory == PoolMemory::kGpu ? gpu.value_or(0) : next_host++;
    Device& device = device_at(trace, index);
    if (memory != PoolMemory::kGpu)
      device.name =
          memory == PoolMemory::kHost ? host_memory_named(dump.allocator) : "memory of a pool (" + dump.allocator + ")";
    if (dump.limit && dump.limit->min == dump.limit->max && (!gpu || !dump.allocator.starts_with("GPU_c")))
      device.allowed_bytes = dump.limit->min;
    const HeapId driver(static_cast<std::uint16_t>(trace.heaps.size()));
    trace.heaps.push_back({HeapKind::kDriver, index, driver, 0, 0, "driver"});
    drivers.push_back(driver);
    places.push_back({HeapId(static_cast<std::uint16_t>(trace.heaps.size())), index});
    trace.heaps.push_back({HeapKind::kBfc, index, driver, 0, 0, dump.allocator});
    add_statements(trace, dump);
  }
  std::vector<std::vector<const DumpedRegion*>> regions;
  for (std::size_t at = 0; at < dumps.size(); ++at) {
    regions.push_back(sound_regions(dumps[at]));
    trace.count("regions of a pool's dump that lie in others", dumps[at].regions.size() - regions.back().size());
    for (const DumpedRegion* region : regions.back())
      add_alloc(trace, places[at], drivers[at], region->address, region->size_bytes, 0);
  }
  for (std::size_t at = 0; at < dumps.size(); ++at) {
    for (const DumpedRegion* region : regions[at]) add_region(trace, dumps[at], *region, places[at]);
  }
  trace.preexisting_count = static_cast<std::uint32_t>(trace.events.size());
  if (trace.allocation_count != 0) trace.capabilities |= kAddresses;
  return places;
}

void add_failed_request(Trace& trace, const PoolDump& dump, const PoolPlace& place, StackId stack) {
  Event event;
  event.kind = EventKind::kAllocFailed;
  event.device = place.device;
  event.heap = place.heap;
  event.size_bytes = dump.rounded ? *dump.rounded : dump.asked ? dump.asked->middle() : 0;
  event.stack = stack;
  trace.events.push_back(event);
}

}  // namespace faultline
