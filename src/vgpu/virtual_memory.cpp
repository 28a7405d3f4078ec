#include "vgpu/virtual_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <map>

#include "vgpu/call.h"
#include "vgpu/device.h"
#include "vgpu/handles.h"
#include "vgpu/pool.h"

namespace faultline::vgpu {
namespace {

// One file for all, so that a program with thousands of handles keeps its file descriptors. It takes memory only where something was written.
class PhysicalFile {
 public:
  static PhysicalFile& get() {
    static PhysicalFile& file = *new PhysicalFile;
    return file;
  }
  ByteRange take(std::uint64_t size_bytes) {
    const std::lock_guard lock(mutex_);
    const std::optional<ByteRange> range = offsets_.take(size_bytes, kBlockBytes);
    require(range.has_value(), CUDA_ERROR_OUT_OF_MEMORY);
    return *range;
  }
  void give_back(ByteRange range) {
    const std::lock_guard lock(mutex_);
    fallocate(descriptor_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(range.begin),
              static_cast<off_t>(range.size()));
    offsets_.give_back(range);
  }
  int descriptor() const { return descriptor_; }

 private:
  PhysicalFile() : descriptor_(memfd_create("faultline-vgpu", MFD_CLOEXEC)) {
    require(descriptor_ >= 0, CUDA_ERROR_OPERATING_SYSTEM);
    require(ftruncate(descriptor_, static_cast<off_t>(kFileBytes)) == 0, CUDA_ERROR_OPERATING_SYSTEM);
  }
  static constexpr std::uint64_t kFileBytes = std::uint64_t{1} << 44;

  std::mutex mutex_;
  const int descriptor_;
  RangeAllocator offsets_{{0, kFileBytes}};
};

struct Physical {
  CUmemAllocationProp properties{};
  ByteRange in_file;
  unsigned references = 1;

  Physical(const CUmemAllocationProp& properties_, std::uint64_t size_bytes)
      : properties(properties_), in_file(PhysicalFile::get().take(size_bytes)) {}
  Physical(const Physical&) = delete;
  ~Physical() {
    PhysicalFile::get().give_back(in_file);
    Memory::get().discharge(properties.location.id, in_file.size());
  }
};
using PhysicalPointer = std::shared_ptr<Physical>;

struct VirtualMemory {
  std::mutex mutex;
  std::map<std::uint64_t, std::uint64_t> reservations;  // begin to end
  std::map<CUmemGenericAllocationHandle, PhysicalPointer> physical;
  std::map<std::uint64_t, std::pair<CUmemGenericAllocationHandle, PhysicalPointer>> mapped;  // by address
};

VirtualMemory& state() {
  static VirtualMemory& all = *new VirtualMemory;
  return all;
}

PhysicalPointer require_physical(CUmemGenericAllocationHandle handle) {
  const auto at = state().physical.find(handle);
  require(at != state().physical.end());
  return at->second;
}

bool reserved(ByteRange range) {
  auto at = state().reservations.upper_bound(range.begin);
  return at != state().reservations.begin() && std::prev(at)->second >= range.end;
}

bool whole_blocks(std::uint64_t address, std::uint64_t size_bytes) {
  return size_bytes != 0 && address % kBlockBytes == 0 && size_bytes % kBlockBytes == 0;
}

ByteRange require_blocks(CUdeviceptr address, std::uint64_t size_bytes) {
  const ByteRange range = ByteRange::of(address, size_bytes);
  require(whole_blocks(address, size_bytes) && range.begin < range.end);
  return range;
}

}  // namespace

CUdeviceptr reserve_addresses(std::uint64_t size_bytes, std::uint64_t alignment, CUdeviceptr wanted) {
  require(whole_blocks(0, size_bytes) && (alignment & (alignment - 1)) == 0);
  const std::lock_guard lock(state().mutex);
  const ByteRange range = Memory::get().take_addresses(size_bytes, std::max(alignment, kBlockBytes), wanted);
  state().reservations.emplace(range.begin, range.end);
  return range.begin;
}

void free_addresses(CUdeviceptr address, std::uint64_t size_bytes) {
  const std::lock_guard lock(state().mutex);
  const auto at = state().reservations.find(address);
  require(at != state().reservations.end() && at->second - at->first == size_bytes);
  const auto mapping = state().mapped.lower_bound(address);
  require(mapping == state().mapped.end() || mapping->first >= at->second);
  state().reservations.erase(at);
  Memory::get().give_back_addresses(ByteRange::of(address, size_bytes));
}

CUmemGenericAllocationHandle create_physical(const CUmemAllocationProp& properties, std::uint64_t size_bytes) {
  require(properties.type == CU_MEM_ALLOCATION_TYPE_PINNED && whole_blocks(0, size_bytes));
  require(properties.location.type == CU_MEM_LOCATION_TYPE_DEVICE, CUDA_ERROR_NOT_SUPPORTED);
  require_device(properties.location.id);
  const CUdevice device = properties.location.id;
  Memory& memory = Memory::get();
  require(
      memory.charge(device, size_bytes) || (release_unused_pool_memory(device) && memory.charge(device, size_bytes)),
      CUDA_ERROR_OUT_OF_MEMORY);
  PhysicalPointer physical;
  try {
    physical = std::make_shared<Physical>(properties, size_bytes);
  } catch (...) {
    memory.discharge(device, size_bytes);
    throw;
  }
  const std::lock_guard lock(state().mutex);
  const CUmemGenericAllocationHandle handle = next_handle_value();
  state().physical.emplace(handle, std::move(physical));
  return handle;
}

void release_physical(CUmemGenericAllocationHandle handle) {
  const std::lock_guard lock(state().mutex);
  const PhysicalPointer physical = require_physical(handle);
  if (--physical->references == 0) state().physical.erase(handle);
}

CUmemGenericAllocationHandle retain_physical(std::uint64_t address) {
  const std::optional<Allocation> allocation = Memory::get().find(address);
  require(allocation && allocation->kind == MemoryKind::kVirtual);
  const std::lock_guard lock(state().mutex);
  const auto at = state().mapped.find(allocation->range.begin);
  require(at != state().mapped.end());
  const auto& [handle, physical] = at->second;
  ++physical->references;
  state().physical[handle] = physical;
  return handle;
}

CUmemAllocationProp properties_of(CUmemGenericAllocationHandle handle) {
  const std::lock_guard lock(state().mutex);
  return require_physical(handle)->properties;
}

void map_physical(CUdeviceptr address, std::uint64_t size_bytes, std::uint64_t offset,
                  CUmemGenericAllocationHandle handle) {
  const std::lock_guard lock(state().mutex);
  const PhysicalPointer physical = require_physical(handle);
  const ByteRange range = require_blocks(address, size_bytes);
  require(reserved(range));
  require(offset % kBlockBytes == 0 && offset <= physical->in_file.size() &&
          size_bytes <= physical->in_file.size() - offset);
  Allocation allocation{.range = range, .kind = MemoryKind::kVirtual, .device = physical->properties.location.id};
  allocation.bytes = Memory::get().backing(address);
  allocation.readable = allocation.writable = false;
  Memory::get().add(allocation);
  Memory::get().back_with(range, PhysicalFile::get().descriptor(), physical->in_file.begin + offset);
  state().mapped.emplace(address, std::pair(handle, physical));
}

void unmap(CUdeviceptr address, std::uint64_t size_bytes) {
  const std::lock_guard lock(state().mutex);
  const ByteRange range = require_blocks(address, size_bytes);
  // Whole mappings, without a gap.
  std::vector<std::uint64_t> leaving;
  for (std::uint64_t reached = address; reached < range.end;) {
    const auto at = state().mapped.find(reached);
    const std::optional<Allocation> allocation = Memory::get().find(reached);
    require(at != state().mapped.end() && allocation && allocation->range.end <= range.end);
    leaving.push_back(reached);
    reached = allocation->range.end;
  }
  for (const std::uint64_t begin : leaving) {
    Memory::get().remove(begin, {MemoryKind::kVirtual});
    state().mapped.erase(begin);
  }
  Memory::get().empty(range);
}

void set_access(CUdeviceptr address, std::uint64_t size_bytes, bool readable, bool writable) {
  const std::lock_guard lock(state().mutex);
  const ByteRange range = require_blocks(address, size_bytes);
  for (std::uint64_t reached = address; reached < range.end;) {
    const std::optional<Allocation> allocation = Memory::get().find(reached);
    require(allocation && allocation->kind == MemoryKind::kVirtual && allocation->range.begin == reached &&
            allocation->range.end <= range.end);
    reached = allocation->range.end;
  }
  Memory::get().change_all_in(range, [&](Allocation& allocation) {
    allocation.readable = readable;
    allocation.writable = writable;
  });
}

}  // namespace faultline::vgpu
