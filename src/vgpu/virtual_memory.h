// Virtual memory management: reserved addresses, physical memory with handles, and the mappings between them.
//
// Physical memory is a piece of one memory file, so that one handle can be mapped at several places and all see the same bytes. It lives until its
// handle is released and its last mapping is gone.
#pragma once

#include <cstdint>

#include "vgpu/memory.h"

namespace faultline::vgpu {

CUdeviceptr reserve_addresses(std::uint64_t size_bytes, std::uint64_t alignment, CUdeviceptr wanted);
void free_addresses(CUdeviceptr address, std::uint64_t size_bytes);

CUmemGenericAllocationHandle create_physical(const CUmemAllocationProp& properties, std::uint64_t size_bytes);
void release_physical(CUmemGenericAllocationHandle handle);
CUmemGenericAllocationHandle retain_physical(std::uint64_t address);
CUmemAllocationProp properties_of(CUmemGenericAllocationHandle handle);

void map_physical(CUdeviceptr address, std::uint64_t size_bytes, std::uint64_t offset,
                  CUmemGenericAllocationHandle handle);
void unmap(CUdeviceptr address, std::uint64_t size_bytes);
void set_access(CUdeviceptr address, std::uint64_t size_bytes, bool readable, bool writable);

}  // namespace faultline::vgpu
