// Which pools there are, and the stream-ordered calls on them.
#include <map>

#include "vgpu/call.h"
#include "vgpu/capture.h"
#include "vgpu/context.h"
#include "vgpu/device.h"
#include "vgpu/handles.h"
#include "vgpu/pool.h"

namespace faultline::vgpu {
namespace {

struct Pools {
  std::mutex mutex;
  Handles<CUmemoryPool, Pool> by_handle;
  std::map<CUdevice, PoolPointer> defaults;
  std::map<CUdevice, PoolPointer> current;
  std::map<CUmemoryPool, PoolPointer> destroyed;  // with pieces in use
};

Pools& pools() {
  static Pools& all = *new Pools;
  return all;
}

PoolPointer make_pool(CUdevice device, std::uint64_t largest_bytes) {
  auto pool = std::make_shared<Pool>(device, largest_bytes);
  pool->handle = pools().by_handle.insert(pool);
  return pool;
}

PoolPointer pool_of(const Allocation& allocation) {
  if (PoolPointer pool = pools().by_handle.find(allocation.pool)) return pool;
  const std::lock_guard lock(pools().mutex);
  const auto at = pools().destroyed.find(allocation.pool);
  require(at != pools().destroyed.end());
  return at->second;
}

void forget_if_empty(const PoolPointer& pool) {
  if (pool->account().used_bytes != 0) return;
  const std::lock_guard lock(pools().mutex);
  pools().destroyed.erase(pool->handle);
}

}  // namespace

PoolPointer default_pool(CUdevice device) {
  require_device(device);
  const std::lock_guard lock(pools().mutex);
  PoolPointer& pool = pools().defaults[device];
  if (pool == nullptr) pool = make_pool(device, 0);
  return pool;
}

PoolPointer current_pool(CUdevice device) {
  require_device(device);
  {
    const std::lock_guard lock(pools().mutex);
    if (const auto at = pools().current.find(device); at != pools().current.end()) return at->second;
  }
  return default_pool(device);
}

void set_current_pool(CUdevice device, const PoolPointer& pool) {
  require_device(device);
  require(pool->device == device);
  const std::lock_guard lock(pools().mutex);
  pools().current[device] = pool;
}

PoolPointer require_pool(CUmemoryPool handle) { return pools().by_handle.require(handle, CUDA_ERROR_INVALID_VALUE); }

CUmemoryPool create_pool(CUdevice device, std::uint64_t largest_bytes) {
  require_device(device);
  return make_pool(device, largest_bytes)->handle;
}

void destroy_pool(CUmemoryPool handle) {
  const PoolPointer pool = require_pool(handle);
  require(pool != default_pool(pool->device));
  pools().by_handle.remove(handle);
  const std::lock_guard lock(pools().mutex);
  std::erase_if(pools().current, [&](const auto& entry) { return entry.second == pool; });
  if (pool->account().used_bytes != 0) pools().destroyed.emplace(handle, pool);
}

std::uint64_t allocate_async(Pool& pool, std::uint64_t size_bytes, const StreamPointer& stream) {
  {
    const auto lock = order_lock();
    require(!captured(*stream), CUDA_ERROR_NOT_SUPPORTED);
  }
  return pool.allocate(size_bytes, stream);
}

void free_async(std::uint64_t address, const StreamPointer& stream) {
  {
    const auto lock = order_lock();
    require(!captured(*stream), CUDA_ERROR_NOT_SUPPORTED);
  }
  const auto push = [&](std::function<void()> run) {
    const auto lock = order_lock();
    return stream->push(std::move(run));
  };
  Allocation freed;
  const bool asked = Memory::get().change(address, [&](Allocation& allocation) {
    const bool can =
        !allocation.free_asked && (allocation.kind == MemoryKind::kPool || allocation.kind == MemoryKind::kDevice);
    if (can) allocation.free_asked = true;
    freed = allocation;
    return can;
  });
  require(asked);
  if (freed.kind == MemoryKind::kDevice) {
    push([address] { Memory::get().remove(address, {MemoryKind::kDevice}); });
    return;
  }
  // The pool must know when the stream is there before it is there: one operation for the moment, the next for what follows from it.
  const PoolPointer pool = pool_of(freed);
  const CompletionPointer reached = push({});
  pool->free_when(address, reached);
  push([pool, address, reached] {
    pool->settle(address, reached);
    forget_if_empty(pool);
  });
}

void free_pool_memory(std::uint64_t address) {
  const std::optional<Allocation> allocation = Memory::get().find(address);
  require(allocation && allocation->kind == MemoryKind::kPool);
  const PoolPointer pool = pool_of(*allocation);
  pool->free_now(address);
  forget_if_empty(pool);
}

bool release_unused_pool_memory(CUdevice device) {
  bool released = false;
  for (const PoolPointer& pool : pools().by_handle.all()) {
    if (pool->device == device) released |= pool->release_down_to(0);
  }
  return released;
}

void release_pool_memory_over_threshold(CUdevice device) {
  for (const PoolPointer& pool : pools().by_handle.all()) {
    if (pool->device == device) pool->release_down_to(pool->release_threshold_bytes);
  }
}

}  // namespace faultline::vgpu
