// Device memory and host memory that devices know.
#include "vgpu/api.h"
#include "vgpu/call.h"
#include "vgpu/capture.h"
#include "vgpu/context.h"
#include "vgpu/device.h"
#include "vgpu/memory.h"
#include "vgpu/pool.h"

namespace faultline::vgpu {
namespace {

std::uint64_t address_of(const void* pointer) { return reinterpret_cast<std::uint64_t>(pointer); }

void require_known(CUdeviceptr address) { require(Memory::get().find(address).has_value()); }

Allocation require_host_memory(const void* pointer) {
  const std::optional<Allocation> allocation = Memory::get().find(address_of(pointer));
  require(allocation && (allocation->kind == MemoryKind::kPinned || allocation->kind == MemoryKind::kRegistered));
  return *allocation;
}

}  // namespace

void api::cuMemGetInfo(std::size_t* free, std::size_t* total) {
  const ContextPointer context = require_context();
  if (total != nullptr) *total = devices().capacity_bytes;
  if (free != nullptr) *free = devices().capacity_bytes - Memory::get().taken(context->device);
}

void api::cuMemAlloc(CUdeviceptr* address, std::size_t size_bytes) {
  require(address != nullptr);
  const ContextPointer context = require_context();
  require_no_capture_disturbed();
  *address = Memory::get().allocate(context->handle, context->device, size_bytes);
}

void api::cuMemAllocPitch(CUdeviceptr* address, std::size_t* pitch, std::size_t width_bytes, std::size_t height,
                          unsigned element_bytes) {
  require(address != nullptr && pitch != nullptr && width_bytes != 0 && height != 0);
  require(element_bytes == 4 || element_bytes == 8 || element_bytes == 16);
  const ContextPointer context = require_context();
  require_no_capture_disturbed();
  constexpr std::size_t kPitchUnit = 512;
  std::size_t size_bytes = 0;
  require(width_bytes <= devices().capacity_bytes, CUDA_ERROR_OUT_OF_MEMORY);
  const std::size_t row = round_up(width_bytes, kPitchUnit);
  require(!__builtin_mul_overflow(row, height, &size_bytes), CUDA_ERROR_OUT_OF_MEMORY);
  *address = Memory::get().allocate(context->handle, context->device, size_bytes);
  *pitch = row;
}

void api::cuMemAllocManaged(CUdeviceptr* address, std::size_t size_bytes, unsigned flags) {
  require(address != nullptr && (flags == CU_MEM_ATTACH_GLOBAL || flags == CU_MEM_ATTACH_HOST));
  const ContextPointer context = require_context();
  require_no_capture_disturbed();
  *address = Memory::get().allocate_host(context->handle, context->device, MemoryKind::kManaged, size_bytes, flags);
}

void api::cuMemFree(CUdeviceptr address) {
  require_context();
  if (address == 0) return;
  require_no_capture_disturbed();
  const std::optional<Allocation> allocation = Memory::get().find(address);
  require(allocation && allocation->range.begin == address && !allocation->free_asked);
  synchronize_device(allocation->device);
  if (allocation->kind == MemoryKind::kPool) {
    free_pool_memory(address);
  } else {
    Memory::get().remove(address, {MemoryKind::kDevice, MemoryKind::kManaged});
  }
}

void api::cuMemGetAddressRange(CUdeviceptr* base, std::size_t* size_bytes, CUdeviceptr address) {
  require_context();
  const std::optional<Allocation> allocation = Memory::get().find(address);
  require(allocation.has_value(), CUDA_ERROR_NOT_FOUND);
  if (base != nullptr) *base = allocation->range.begin;
  if (size_bytes != nullptr) *size_bytes = allocation->range.size();
}

void api::cuMemAllocHost(void** pointer, std::size_t size_bytes) { api::cuMemHostAlloc(pointer, size_bytes, 0); }
void api::cuMemHostAlloc(void** pointer, std::size_t size_bytes, unsigned flags) {
  require(pointer != nullptr);
  const ContextPointer context = require_context();
  require_no_capture_disturbed();
  *pointer = reinterpret_cast<void*>(
      Memory::get().allocate_host(context->handle, context->device, MemoryKind::kPinned, size_bytes, flags));
}

void api::cuMemFreeHost(void* pointer) {
  require_context();
  require_no_capture_disturbed();
  const std::optional<Allocation> allocation = Memory::get().find(address_of(pointer));
  require(allocation && allocation->kind == MemoryKind::kPinned && allocation->range.begin == address_of(pointer));
  synchronize_device(allocation->device);
  Memory::get().remove(address_of(pointer), {MemoryKind::kPinned});
}

void api::cuMemHostRegister(void* pointer, std::size_t size_bytes, unsigned flags) {
  const ContextPointer context = require_context();
  require(pointer != nullptr && size_bytes != 0 && address_of(pointer) + size_bytes > address_of(pointer));
  Allocation allocation{.range = ByteRange::of(address_of(pointer), size_bytes),
                        .kind = MemoryKind::kRegistered,
                        .device = context->device};
  allocation.context = context->handle;
  allocation.bytes = static_cast<std::byte*>(pointer);
  allocation.flags = flags;
  Memory::get().add(allocation, CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
}

void api::cuMemHostUnregister(void* pointer) {
  require_context();
  require(pointer != nullptr);
  const std::optional<Allocation> allocation = Memory::get().find(address_of(pointer));
  require(allocation && allocation->kind == MemoryKind::kRegistered && allocation->range.begin == address_of(pointer),
          CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
  Memory::get().remove(address_of(pointer), {MemoryKind::kRegistered});
}

void api::cuMemHostGetDevicePointer(CUdeviceptr* address, void* pointer, unsigned flags) {
  require_context();
  require(address != nullptr && flags == 0);
  require_host_memory(pointer);
  *address = address_of(pointer);
}

void api::cuMemHostGetFlags(unsigned* flags, void* pointer) {
  require_context();
  require(flags != nullptr);
  *flags = require_host_memory(pointer).flags | CU_MEMHOSTALLOC_DEVICEMAP;
}

// Managed memory is one memory for host and devices here: there is nothing to move.
void api::cuMemAdvise(CUdeviceptr address, std::size_t, CUmem_advise, CUdevice) { require_known(address); }
void api::cuMemAdvise(CUdeviceptr address, std::size_t, CUmem_advise, CUmemLocation) { require_known(address); }
void api::cuMemPrefetchAsync(CUdeviceptr address, std::size_t, CUdevice, CUstream stream) {
  require_stream(stream);
  require_known(address);
}
void api::cuMemPrefetchAsync(CUdeviceptr address, std::size_t, CUmemLocation, unsigned, CUstream stream) {
  require_stream(stream);
  require_known(address);
}

}  // namespace faultline::vgpu
