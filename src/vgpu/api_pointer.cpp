// What a program may ask about a pointer.
#include "vgpu/api.h"
#include "vgpu/call.h"
#include "vgpu/context.h"
#include "vgpu/memory.h"

namespace faultline::vgpu {
namespace {

// False: the attribute says nothing about this memory.
bool tell_attribute(const Allocation& allocation, CUpointer_attribute attribute, CUdeviceptr address, void* place) {
  const bool on_host = allocation.kind == MemoryKind::kPinned || allocation.kind == MemoryKind::kRegistered;
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT: answer_as<CUcontext>(place, allocation.context); break;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      answer_as<unsigned>(place, on_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE);
      break;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER: answer_as<CUdeviceptr>(place, address); break;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      if (!allocation.on_host()) return false;
      answer_as<void*>(place, reinterpret_cast<void*>(address));
      break;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS: answer_as<unsigned>(place, 0); break;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID: answer_as<unsigned long long>(place, allocation.id); break;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      answer_as<unsigned>(place, allocation.kind == MemoryKind::kManaged ? 1 : 0);
      break;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: answer_as<int>(place, allocation.device); break;
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE: answer_as<unsigned>(place, 0); break;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR: answer_as<CUdeviceptr>(place, allocation.range.begin); break;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE: answer_as<std::size_t>(place, allocation.range.size()); break;
    case CU_POINTER_ATTRIBUTE_MAPPED: answer_as<unsigned>(place, 1); break;
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES: answer_as<unsigned long long>(place, 0); break;
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
      answer_as<unsigned>(place, allocation.writable   ? CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE
                                 : allocation.readable ? CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READ
                                                       : CU_POINTER_ATTRIBUTE_ACCESS_FLAG_NONE);
      break;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE: answer_as<CUmemoryPool>(place, allocation.pool); break;
    default: return false;
  }
  return true;
}

// What several attributes at once answer for a pointer that nobody knows.
void answer_unknown(CUpointer_attribute attribute, void* place) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: answer_as<int>(place, -2); break;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_MAPPED:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE: answer_as<unsigned>(place, 0); break;
    case CU_POINTER_ATTRIBUTE_P2P_TOKENS: break;
    default: answer_as<std::uint64_t>(place, 0); break;
  }
}

}  // namespace

void api::cuPointerGetAttribute(void* place, CUpointer_attribute attribute, CUdeviceptr address) {
  require(place != nullptr);
  const std::optional<Allocation> allocation = Memory::get().find(address);
  require(allocation && tell_attribute(*allocation, attribute, address, place));
}

void api::cuPointerGetAttributes(unsigned count, CUpointer_attribute* attributes, void** places, CUdeviceptr address) {
  require(count == 0 || (attributes != nullptr && places != nullptr));
  const std::optional<Allocation> allocation = Memory::get().find(address);
  for (unsigned at = 0; at < count; ++at) {
    require(places[at] != nullptr);
    if (!allocation || !tell_attribute(*allocation, attributes[at], address, places[at]))
      answer_unknown(attributes[at], places[at]);
  }
}

void api::cuPointerSetAttribute(const void* value, CUpointer_attribute attribute, CUdeviceptr address) {
  require(value != nullptr && attribute == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS);
  require(Memory::get().find(address).has_value());
}

}  // namespace faultline::vgpu
