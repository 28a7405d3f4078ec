// Stream-ordered memory.
#include <cstring>

#include "vgpu/api.h"
#include "vgpu/call.h"
#include "vgpu/context.h"
#include "vgpu/device.h"
#include "vgpu/pool.h"

namespace faultline::vgpu {
namespace {

CUdevice device_of(const CUmemLocation* location, CUmemAllocationType type) {
  require(location != nullptr && location->type == CU_MEM_LOCATION_TYPE_DEVICE &&
          type == CU_MEM_ALLOCATION_TYPE_PINNED);
  require_device(location->id);
  return location->id;
}

template <class Value>
Value read(const void* place) {
  Value value;
  std::memcpy(&value, place, sizeof value);
  return value;
}

}  // namespace

void api::cuMemAllocAsync(CUdeviceptr* address, std::size_t size_bytes, CUstream stream) {
  require(address != nullptr);
  const StreamPointer target = require_stream(stream);
  *address = allocate_async(*current_pool(target->context.device), size_bytes, target);
}

void api::cuMemAllocFromPoolAsync(CUdeviceptr* address, std::size_t size_bytes, CUmemoryPool pool, CUstream stream) {
  require(address != nullptr);
  const StreamPointer target = require_stream(stream);
  *address = allocate_async(*require_pool(pool), size_bytes, target);
}

void api::cuMemFreeAsync(CUdeviceptr address, CUstream stream) {
  const StreamPointer target = require_stream(stream);
  if (address != 0) free_async(address, target);
}

void api::cuDeviceGetDefaultMemPool(CUmemoryPool* pool, CUdevice device) {
  answer(pool, [&] { return default_pool(device)->handle; });
}

void api::cuDeviceGetMemPool(CUmemoryPool* pool, CUdevice device) {
  answer(pool, [&] { return current_pool(device)->handle; });
}

void api::cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool) { set_current_pool(device, require_pool(pool)); }

void api::cuMemGetDefaultMemPool(CUmemoryPool* pool, CUmemLocation* location, CUmemAllocationType type) {
  answer(pool, [&] { return default_pool(device_of(location, type))->handle; });
}

void api::cuMemGetMemPool(CUmemoryPool* pool, CUmemLocation* location, CUmemAllocationType type) {
  answer(pool, [&] { return current_pool(device_of(location, type))->handle; });
}

void api::cuMemSetMemPool(CUmemLocation* location, CUmemAllocationType type, CUmemoryPool pool) {
  set_current_pool(device_of(location, type), require_pool(pool));
}

void api::cuMemPoolCreate(CUmemoryPool* pool, const CUmemPoolProps* properties) {
  require(pool != nullptr && properties != nullptr);
  require(properties->handleTypes == CU_MEM_HANDLE_TYPE_NONE, CUDA_ERROR_NOT_SUPPORTED);
  *pool = create_pool(device_of(&properties->location, properties->allocType), properties->maxSize);
}

void api::cuMemPoolDestroy(CUmemoryPool pool) { destroy_pool(pool); }

void api::cuMemPoolTrimTo(CUmemoryPool pool, std::size_t keep_bytes) {
  require_pool(pool)->release_down_to(keep_bytes);
}

void api::cuMemPoolGetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute, void* place) {
  require(place != nullptr);
  const PoolPointer pool = require_pool(handle);
  const Pool::Account account = pool->account();
  switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES: answer_as<int>(place, pool->reuse_follow_events); break;
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC: answer_as<int>(place, pool->reuse_opportunistic); break;
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES: answer_as<int>(place, pool->reuse_internal); break;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: answer_as<cuuint64_t>(place, pool->release_threshold_bytes); break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT: answer_as<cuuint64_t>(place, account.reserved_bytes); break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH: answer_as<cuuint64_t>(place, account.reserved_high_bytes); break;
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT: answer_as<cuuint64_t>(place, account.used_bytes); break;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH: answer_as<cuuint64_t>(place, account.used_high_bytes); break;
    case CU_MEMPOOL_ATTR_ALLOCATION_TYPE: answer_as<CUmemAllocationType>(place, CU_MEM_ALLOCATION_TYPE_PINNED); break;
    case CU_MEMPOOL_ATTR_EXPORT_HANDLE_TYPES:
      answer_as<CUmemAllocationHandleType>(place, CU_MEM_HANDLE_TYPE_NONE);
      break;
    case CU_MEMPOOL_ATTR_LOCATION_ID: answer_as<int>(place, pool->device); break;
    case CU_MEMPOOL_ATTR_LOCATION_TYPE: answer_as<CUmemLocationType>(place, CU_MEM_LOCATION_TYPE_DEVICE); break;
    default: refuse(CUDA_ERROR_INVALID_VALUE);
  }
}

void api::cuMemPoolSetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute, void* place) {
  require(place != nullptr);
  const PoolPointer pool = require_pool(handle);
  switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES: pool->reuse_follow_events = read<int>(place); break;
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC: pool->reuse_opportunistic = read<int>(place); break;
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES: pool->reuse_internal = read<int>(place); break;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: pool->release_threshold_bytes = read<cuuint64_t>(place); break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
      require(read<cuuint64_t>(place) == 0);
      pool->reset_high(attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH);
      break;
    default: refuse(CUDA_ERROR_INVALID_VALUE);
  }
}

// All devices can reach every pool.
void api::cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc* accesses, std::size_t count) {
  require(count == 0 || accesses != nullptr);
  require_pool(pool);
}

void api::cuMemPoolGetAccess(CUmemAccess_flags* flags, CUmemoryPool pool, CUmemLocation* location) {
  require(flags != nullptr && location != nullptr);
  require_pool(pool);
  *flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
}

}  // namespace faultline::vgpu
