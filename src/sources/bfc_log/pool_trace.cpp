#include "sources/bfc_log/pool_trace.h"

#include <algorithm>

#include "sources/pool_names.h"
#include "trace/framework.h"
#include "trace/host_memory.h"

namespace faultline {
namespace {

constexpr std::size_t kMostPools = 256;

}  // namespace

PoolTrace::PoolTrace() {
  trace.streams.emplace_back();
  pools_.emplace_back();
}

PoolTrace::Pool PoolTrace::pool(std::string_view name) {
  for (std::size_t at = 1; at < pools_.size(); ++at) {
    if (pools_[at].name == name) return static_cast<Pool>(at);
  }
  if (pools_.size() >= kMostPools || name.empty() || name.size() > 256) return 0;
  PoolState pool;
  pool.name = std::string(name);
  const std::optional<std::uint16_t> gpu = gpu_of(name);
  pool.is_host = !gpu;
  if (name.starts_with("XLA_backend_") || name.starts_with("xla_gpu_"))
    state_framework(Framework::kJax);  // its client's names
  pool.device = gpu.value_or(0);
  pool.driver_heap = HeapId(static_cast<std::uint16_t>(trace.heaps.size()));
  trace.heaps.push_back({HeapKind::kDriver, pool.device, pool.driver_heap, 0, 0, "driver"});
  pool.heap = HeapId(static_cast<std::uint16_t>(trace.heaps.size()));
  trace.heaps.push_back({HeapKind::kBfc, pool.device, pool.driver_heap, 0, 0, pool.name});
  pools_.push_back(std::move(pool));
  return static_cast<Pool>(pools_.size() - 1);
}

Event PoolTrace::made(EventKind kind, const PoolState& pool, HeapId heap, std::uint64_t address, std::uint64_t bytes,
                      Mark mark) {
  Event event;
  event.kind = kind;
  event.device = pool.device;
  event.heap = heap;
  event.address = address;
  event.size_bytes = bytes;
  event.time_ns = mark.time_ns;
  event.thread = mark.thread;
  if (address != 0) event.set(kAddressKnown);
  return event;
}

void PoolTrace::region_taken(Pool number, ByteRange region, Mark mark) {
  PoolState& pool = pools_[number];
  Event event = made(EventKind::kAlloc, pool, pool.driver_heap, region.begin, region.size(), mark);
  event.allocation = AllocationId(++trace.allocation_count);
  pool.regions[region.begin] = {event.allocation, region.size(), trace.events.size()};
  trace.events.push_back(event);
}

void PoolTrace::region_returned(Pool number, std::uint64_t address, Mark mark) {
  PoolState& pool = pools_[number];
  const auto at = pool.regions.find(address);
  if (at == pool.regions.end()) {
    trace.count("regions given back that were never seen taken");
    return;
  }
  Event event = made(EventKind::kFree, pool, pool.driver_heap, address, at->second.bytes, mark);
  event.allocation = at->second.id;
  pool.regions.erase(at);
  trace.events.push_back(event);
}

std::size_t PoolTrace::allocated(Pool number, std::uint64_t bytes, std::uint64_t address, Mark mark) {
  PoolState& pool = pools_[number];
  if (!frees_are_nameless_ && pool.live.contains(address)) {
    trace.count("frees that are missing: their address was handed out again");
    freed(number, address, mark, {});
  }
  Event event = made(EventKind::kAlloc, pool, pool.heap, address, bytes, mark);
  event.allocation = AllocationId(++trace.allocation_count);
  pool.live[address] = {event.allocation, bytes, trace.events.size()};
  trace.events.push_back(event);
  return trace.events.size() - 1;
}

void PoolTrace::correct(Pool number, std::uint64_t address, std::uint64_t bytes) {
  const auto at = pools_[number].live.find(address);
  if (at == pools_[number].live.end()) return;
  trace.events[at->second.event].size_bytes = at->second.bytes = bytes;
}

std::size_t PoolTrace::failed(Pool number, std::uint64_t bytes, Mark mark) {
  trace.events.push_back(made(EventKind::kAllocFailed, pools_[number], pools_[number].heap, 0, bytes, mark));
  return trace.events.size() - 1;
}

void PoolTrace::freed(Pool number, std::uint64_t address, Mark mark, StackId stack, bool at_exit) {
  if (at_exit) exit_frees_.push_back(trace.events.size());
  PoolState& pool = pools_[number];
  Event event = made(EventKind::kFree, pool, pool.heap, address, 0, mark);
  event.stack = stack;
  const auto at = pool.live.find(address);
  if (at == pool.live.end()) {
    trace.count("frees of memory that was never seen allocated");
  } else {
    event.allocation = at->second.id;
    event.size_bytes = at->second.bytes;
    pool.live.erase(at);
  }
  trace.events.push_back(event);
}

void PoolTrace::freed_somewhere(Pool number, std::uint64_t bytes, Mark mark) {
  trace.events.push_back(made(EventKind::kFree, pools_[number], pools_[number].heap, 0, bytes, mark));
}

void PoolTrace::state_limit(Pool number, ByteInterval limit) {
  std::optional<ByteInterval>& known = pools_[number].limit;
  if (!known || limit.min > known->max || limit.max < known->min)
    known = limit;
  else
    known = ByteInterval{std::max(known->min, limit.min), std::min(known->max, limit.max)};
}

// Memory of the host is a device of its own, behind the GPUs.
void PoolTrace::place_hosts() {
  std::uint16_t next = 0;
  for (const PoolState& pool : pools_) {
    if (!pool.is_host && !pool.name.empty()) next = std::max<std::uint16_t>(next, pool.device + 1);
  }
  for (PoolState& pool : pools_) {
    if (!pool.is_host) continue;
    pool.device = next++;
    device_names_[pool.device] = memory_of(pool.name) == PoolMemory::kHost ? host_memory_named(pool.name)
                                                                           : "memory of a pool (" + pool.name + ")";
    for (const HeapId heap : {pool.heap, pool.driver_heap}) trace.heaps[heap.index()].device = pool.device;
  }
  for (Event& event : trace.events) event.device = trace.heaps[event.heap.index()].device;
}

void PoolTrace::drop_exit() {
  const auto last = std::find_if(trace.events.rbegin(), trace.events.rend(),
                                 [](const Event& event) { return event.kind == EventKind::kAlloc; });
  const auto last_alloc = static_cast<std::size_t>(trace.events.rend() - last);
  const auto first = std::lower_bound(exit_frees_.begin(), exit_frees_.end(), last_alloc);
  if (first == exit_frees_.end()) return;
  trace.properties["bfc.freed_at_exit"] = std::to_string(exit_frees_.end() - first);
  std::size_t kept = *first;
  for (std::size_t at = *first; at < trace.events.size(); ++at) {
    if (!std::binary_search(first, exit_frees_.end(), at)) trace.events[kept++] = trace.events[at];
  }
  trace.events.resize(kept);
}

Trace PoolTrace::finish(bool has_stacks) {
  drop_exit();
  place_hosts();
  bool all_from_start = pools_.size() > 1;
  std::map<std::uint16_t, Device> devices;
  for (std::size_t at = 1; at < pools_.size(); ++at) {
    const PoolState& pool = pools_[at];
    Device& device = devices[pool.device];
    device.index = pool.device;
    if (const auto name = device_names_.find(pool.device); name != device_names_.end()) device.name = name->second;
    all_from_start &= pool.from_start;
    const std::string property = "bfc." + pool.name + ".";
    if (pool.growth) trace.properties[property + "growth"] = *pool.growth ? "true" : "false";
    if (!pool.limit) continue;
    const bool is_exact = pool.limit->min == pool.limit->max;
    trace.properties[property + "limit"] =
        std::to_string(pool.limit->min) + (is_exact ? "" : ".." + std::to_string(pool.limit->max));
    const bool is_main = pool.is_host || pool.name == "GPU_" + std::to_string(pool.device) + "_bfc";
    if (is_exact && is_main) device.allowed_bytes = pool.limit->min;
  }
  for (auto& [index, device] : devices) trace.devices.push_back(std::move(device));
  trace.properties.try_emplace(kPoolsFramework, file_name_of(Framework::kTensorFlow));
  trace.capabilities = kAddresses | kEvents | kTimes;
  if (has_stacks) trace.capabilities |= kStacks;
  if (all_from_start) trace.capabilities |= kCompleteFromStart;
  return std::move(trace);
}

}  // namespace faultline
