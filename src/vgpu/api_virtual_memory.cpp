#include "vgpu/api.h"
#include "vgpu/call.h"
#include "vgpu/device.h"
#include "vgpu/virtual_memory.h"

namespace faultline::vgpu {

void api::cuMemAddressReserve(CUdeviceptr* address, std::size_t size_bytes, std::size_t alignment, CUdeviceptr wanted,
                              unsigned long long flags) {
  require(address != nullptr && flags == 0);
  *address = reserve_addresses(size_bytes, alignment, wanted);
}

void api::cuMemAddressFree(CUdeviceptr address, std::size_t size_bytes) { free_addresses(address, size_bytes); }

void api::cuMemGetAllocationGranularity(std::size_t* granularity, const CUmemAllocationProp* properties,
                                        CUmemAllocationGranularity_flags) {
  require(granularity != nullptr && properties != nullptr);
  *granularity = kBlockBytes;
}

void api::cuMemCreate(CUmemGenericAllocationHandle* handle, std::size_t size_bytes,
                      const CUmemAllocationProp* properties, unsigned long long flags) {
  require(handle != nullptr && properties != nullptr && flags == 0);
  require(properties->requestedHandleTypes == CU_MEM_HANDLE_TYPE_NONE, CUDA_ERROR_NOT_SUPPORTED);
  *handle = create_physical(*properties, size_bytes);
}

void api::cuMemRelease(CUmemGenericAllocationHandle handle) { release_physical(handle); }

void api::cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle, void* address) {
  answer(handle, [&] { return retain_physical(reinterpret_cast<std::uint64_t>(address)); });
}

void api::cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp* properties, CUmemGenericAllocationHandle handle) {
  answer(properties, [&] { return properties_of(handle); });
}

void api::cuMemMap(CUdeviceptr address, std::size_t size_bytes, std::size_t offset, CUmemGenericAllocationHandle handle,
                   unsigned long long flags) {
  require(flags == 0);
  map_physical(address, size_bytes, offset, handle);
}

void api::cuMemUnmap(CUdeviceptr address, std::size_t size_bytes) { unmap(address, size_bytes); }

void api::cuMemSetAccess(CUdeviceptr address, std::size_t size_bytes, const CUmemAccessDesc* accesses,
                         std::size_t count) {
  require(accesses != nullptr && count != 0);
  for (std::size_t at = 0; at < count; ++at) {
    if (accesses[at].location.type != CU_MEM_LOCATION_TYPE_DEVICE) continue;
    require_device(accesses[at].location.id);
    const CUmemAccess_flags flags = accesses[at].flags;
    set_access(address, size_bytes, flags != CU_MEM_ACCESS_FLAGS_PROT_NONE,
               flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  }
}

void api::cuMemGetAccess(unsigned long long* flags, const CUmemLocation* location, CUdeviceptr address) {
  require(flags != nullptr && location != nullptr);
  const std::optional<Allocation> allocation = Memory::get().find(address);
  require(allocation && allocation->kind == MemoryKind::kVirtual);
  *flags = allocation->writable   ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
           : allocation->readable ? CU_MEM_ACCESS_FLAGS_PROT_READ
                                  : CU_MEM_ACCESS_FLAGS_PROT_NONE;
}

}  // namespace faultline::vgpu
