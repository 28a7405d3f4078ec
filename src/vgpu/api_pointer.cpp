// What a program may ask about a pointer.
#include <algorithm>
#include <cstring>

#include "vgpu/api.h"
#include "vgpu/call.h"
#include "vgpu/context.h"
#include "vgpu/memory.h"

namespace faultline::vgpu {
namespace {

template <class Value>
CUresult answer(void* place, Value value) {
  std::memcpy(place, &value, sizeof value);
  return CUDA_SUCCESS;
}

CUresult attribute_of(const Allocation& allocation, CUpointer_attribute attribute, CUdeviceptr address, void* place) {
  const bool on_host = allocation.kind == MemoryKind::kPinned || allocation.kind == MemoryKind::kRegistered;
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT: return answer<CUcontext>(place, allocation.context);
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE: return answer<unsigned>(place, on_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE);
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER: return answer<CUdeviceptr>(place, address);
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      if (!allocation.on_host()) return CUDA_ERROR_INVALID_VALUE;
      return answer(place, reinterpret_cast<void*>(address));
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS: return answer<unsigned>(place, 0);
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID: return answer<unsigned long long>(place, allocation.id);
    case CU_POINTER_ATTRIBUTE_IS_MANAGED: return answer<unsigned>(place, allocation.kind == MemoryKind::kManaged ? 1 : 0);
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: return answer<int>(place, allocation.device);
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE: return answer<unsigned>(place, 0);
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR: return answer<CUdeviceptr>(place, allocation.range.begin);
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE: return answer<std::size_t>(place, allocation.range.size());
    case CU_POINTER_ATTRIBUTE_MAPPED: return answer<unsigned>(place, 1);
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES: return answer<unsigned long long>(place, 0);
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
      return answer<unsigned>(place, allocation.writable   ? CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE
                                     : allocation.readable ? CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READ
                                                           : CU_POINTER_ATTRIBUTE_ACCESS_FLAG_NONE);
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE: return answer<CUmemoryPool>(place, allocation.pool);
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

// What several attributes at once answer for a pointer that nobody knows.
void answer_unknown(CUpointer_attribute attribute, void* place) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: answer<int>(place, -2); break;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_MAPPED:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE: answer<unsigned>(place, 0); break;
    case CU_POINTER_ATTRIBUTE_P2P_TOKENS: break;
    default: answer<std::uint64_t>(place, 0); break;
  }
}

}  // namespace

CUresult api::cuPointerGetAttribute(void* place, CUpointer_attribute attribute, CUdeviceptr address) {
  require(place != nullptr);
  const std::optional<Allocation> allocation = Memory::get().find(address);
  require(allocation.has_value());
  return attribute_of(*allocation, attribute, address, place);
}

CUresult api::cuPointerGetAttributes(unsigned count, CUpointer_attribute* attributes, void** places, CUdeviceptr address) {
  require(count == 0 || (attributes != nullptr && places != nullptr));
  const std::optional<Allocation> allocation = Memory::get().find(address);
  for (unsigned at = 0; at < count; ++at) {
    require(places[at] != nullptr);
    if (!allocation || attribute_of(*allocation, attributes[at], address, places[at]) != CUDA_SUCCESS) answer_unknown(attributes[at], places[at]);
  }
  return CUDA_SUCCESS;
}

CUresult api::cuPointerSetAttribute(const void* value, CUpointer_attribute attribute, CUdeviceptr address) {
  require(value != nullptr && attribute == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS);
  require(Memory::get().find(address).has_value());
  return CUDA_SUCCESS;
}

}  // namespace faultline::vgpu
