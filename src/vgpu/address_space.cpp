#include "vgpu/address_space.h"

#include <sys/mman.h>

#include "vgpu/call.h"

namespace faultline::vgpu {
namespace {

void* reserve(std::uint64_t size_bytes, int protection) {
  return mmap(nullptr, size_bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

// Neither for core dumps nor for forked children, which cannot use the devices: both would be slow.
void keep_to_ourselves(void* memory, std::uint64_t size_bytes) {
  madvise(memory, size_bytes, MADV_DONTDUMP);
  madvise(memory, size_bytes, MADV_DONTFORK);
}

ByteRange reserve_addresses(std::uint64_t capacity_bytes, std::uint64_t& distance) {
  // As much as the process may have: tools and limits can make address space scarce.
  const std::uint64_t least = round_up(capacity_bytes, kBlockBytes) * 2;
  for (std::uint64_t size = std::uint64_t{16} << 40; size >= least; size /= 2) {
    void* const addresses = reserve(size + kBlockBytes, PROT_NONE);
    if (addresses == MAP_FAILED) continue;
    void* const memory = reserve(size + kBlockBytes, PROT_READ | PROT_WRITE);
    if (memory == MAP_FAILED) {
      munmap(addresses, size + kBlockBytes);
      continue;
    }
    keep_to_ourselves(memory, size + kBlockBytes);
    const auto begin = round_up(reinterpret_cast<std::uint64_t>(addresses), kBlockBytes);
    distance = round_up(reinterpret_cast<std::uint64_t>(memory), kBlockBytes) - begin;
    return ByteRange::of(begin, size);
  }
  refuse(CUDA_ERROR_OPERATING_SYSTEM);
}

}  // namespace

AddressSpace::AddressSpace(std::uint64_t capacity_bytes) : addresses_(reserve_addresses(capacity_bytes, distance_)) {}

ByteRange AddressSpace::take(std::uint64_t size_bytes, std::uint64_t alignment) {
  const std::optional<ByteRange> range = addresses_.take(size_bytes, alignment);
  require(range.has_value(), CUDA_ERROR_OUT_OF_MEMORY);
  return *range;
}

void AddressSpace::give_back(ByteRange range) {
  madvise(backing(range.begin), range.size(), MADV_DONTNEED);
  addresses_.give_back(range);
}

void AddressSpace::back_with(ByteRange range, int file, std::uint64_t offset) {
  void* const mapped = mmap(backing(range.begin), range.size(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file,
                            static_cast<off_t>(offset));
  require(mapped != MAP_FAILED, CUDA_ERROR_MAP_FAILED);
  keep_to_ourselves(mapped, range.size());
}

void AddressSpace::empty(ByteRange range) {
  void* const fresh = mmap(backing(range.begin), range.size(), PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  require(fresh != MAP_FAILED, CUDA_ERROR_UNMAP_FAILED);
  keep_to_ourselves(fresh, range.size());
}

}  // namespace faultline::vgpu
