#include "vgpu/memory.h"

#include <sys/mman.h>

#include <algorithm>

#include "vgpu/call.h"
#include "vgpu/device.h"
#include "vgpu/pool.h"

namespace faultline::vgpu {
namespace {

constexpr std::uint64_t kAlignment = 512;
constexpr std::uint64_t kLargestSmall = kBlockBytes / 2;
constexpr std::uint64_t kPageBytes = 4096;

}  // namespace

Memory& Memory::get() {
  static Memory& memory = *new Memory;  // streams may use it until the process is gone
  return memory;
}

Memory::Memory()
    : space_(devices().capacity_bytes * static_cast<std::uint64_t>(std::max(1, devices().count))),
      taken_bytes_(static_cast<std::size_t>(devices().count)) {}

bool Memory::charge(CUdevice device, std::uint64_t size_bytes) {
  const std::lock_guard lock(mutex_);
  std::uint64_t& taken_now = taken_bytes_[static_cast<std::size_t>(device)];
  if (size_bytes > devices().capacity_bytes || taken_now > devices().capacity_bytes - size_bytes) return false;
  taken_now += size_bytes;
  return true;
}

void Memory::discharge(CUdevice device, std::uint64_t size_bytes) {
  const std::lock_guard lock(mutex_);
  taken_bytes_[static_cast<std::size_t>(device)] -= size_bytes;
}

std::uint64_t Memory::taken(CUdevice device) const {
  const std::lock_guard lock(mutex_);
  return taken_bytes_[static_cast<std::size_t>(device)];
}

std::optional<ByteRange> Memory::take_blocks(CUdevice device, std::uint64_t size_bytes) {
  if (!charge(device, size_bytes)) return std::nullopt;
  const std::lock_guard lock(mutex_);
  return space_.take(size_bytes, kBlockBytes);
}

std::optional<ByteRange> Memory::take_small(CUcontext context, CUdevice device, std::uint64_t size_bytes) {
  {
    const std::lock_guard lock(mutex_);
    for (auto& [begin, block] : small_blocks_[context]) {
      if (const std::optional<ByteRange> range = block.take(size_bytes, kAlignment)) return range;
    }
  }
  const std::optional<ByteRange> block = take_blocks(device, kBlockBytes);
  if (!block) return std::nullopt;
  const std::lock_guard lock(mutex_);
  return small_blocks_[context]
      .emplace(block->begin, RangeAllocator(*block))
      .first->second.take(size_bytes, kAlignment);
}

std::optional<ByteRange> Memory::take_device_range(CUcontext context, CUdevice device, std::uint64_t size_bytes) {
  const std::uint64_t rounded = round_up(size_bytes, kAlignment);
  return rounded <= kLargestSmall ? take_small(context, device, rounded)
                                  : take_blocks(device, round_up(size_bytes, kBlockBytes));
}

std::uint64_t Memory::allocate(CUcontext context, CUdevice device, std::uint64_t size_bytes) {
  require(size_bytes != 0);
  require(size_bytes <= devices().capacity_bytes, CUDA_ERROR_OUT_OF_MEMORY);
  std::optional<ByteRange> range = take_device_range(context, device, size_bytes);
  if (!range && release_unused_pool_memory(device)) range = take_device_range(context, device, size_bytes);
  require(range.has_value(), CUDA_ERROR_OUT_OF_MEMORY);
  Allocation allocation{.range = ByteRange::of(range->begin, size_bytes),
                        .kind = MemoryKind::kDevice,
                        .device = device,
                        .context = context};
  allocation.bytes = space_.backing(range->begin);
  add(allocation);
  return range->begin;
}

std::uint64_t Memory::allocate_host(CUcontext context, CUdevice device, MemoryKind kind, std::uint64_t size_bytes,
                                    unsigned flags) {
  require(size_bytes != 0);
  require(size_bytes < (std::uint64_t{1} << 46), CUDA_ERROR_OUT_OF_MEMORY);
  void* const bytes =
      mmap(nullptr, round_up(size_bytes, kPageBytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  require(bytes != MAP_FAILED, CUDA_ERROR_OUT_OF_MEMORY);
  const auto address = reinterpret_cast<std::uint64_t>(bytes);
  Allocation allocation{
      .range = ByteRange::of(address, size_bytes), .kind = kind, .device = device, .context = context};
  allocation.bytes = static_cast<std::byte*>(bytes);
  allocation.flags = flags;
  add(allocation);
  return address;
}

void Memory::add(Allocation allocation, CUresult overlap) {
  const std::lock_guard lock(mutex_);
  const auto after = allocations_.lower_bound(allocation.range.begin);
  const bool free_before = after == allocations_.begin() || !std::prev(after)->second.range.overlaps(allocation.range);
  const bool free_after = after == allocations_.end() || !after->second.range.overlaps(allocation.range);
  require(free_before && free_after, overlap);
  allocation.id = next_id_++;
  allocations_.emplace_hint(after, allocation.range.begin, allocation);
}

Allocation Memory::remove(std::uint64_t address, std::initializer_list<MemoryKind> kinds) {
  const std::lock_guard lock(mutex_);
  const auto at = allocations_.find(address);
  require(at != allocations_.end() && std::find(kinds.begin(), kinds.end(), at->second.kind) != kinds.end());
  const Allocation allocation = at->second;
  allocations_.erase(at);
  release(allocation);
  return allocation;
}

void Memory::remove_all_of(CUcontext context) {
  const std::lock_guard lock(mutex_);
  for (auto at = allocations_.begin(); at != allocations_.end();) {
    const Allocation allocation = at->second;
    if (allocation.context != context) {
      ++at;
      continue;
    }
    at = allocations_.erase(at);
    release(allocation);
  }
  small_blocks_.erase(context);
}

// The lock is held.
void Memory::release(const Allocation& allocation) {
  if (allocation.kind == MemoryKind::kPinned || allocation.kind == MemoryKind::kManaged) {
    munmap(allocation.bytes, round_up(allocation.range.size(), kPageBytes));
  }
  if (allocation.kind != MemoryKind::kDevice) return;
  const std::uint64_t rounded = round_up(allocation.range.size(), kAlignment);
  std::uint64_t given_back_bytes = 0;
  if (rounded > kLargestSmall) {
    given_back_bytes = round_up(allocation.range.size(), kBlockBytes);
    space_.give_back(ByteRange::of(allocation.range.begin, given_back_bytes));
  } else {
    auto& blocks = small_blocks_[allocation.context];
    const auto block = blocks.find(allocation.range.begin / kBlockBytes * kBlockBytes);
    block->second.give_back(ByteRange::of(allocation.range.begin, rounded));
    if (block->second.all_free()) {
      given_back_bytes = kBlockBytes;
      space_.give_back(block->second.range());
      blocks.erase(block);
    }
  }
  taken_bytes_[static_cast<std::size_t>(allocation.device)] -= given_back_bytes;
}

Memory::Allocations::const_iterator Memory::holder(std::uint64_t address) const {
  auto at = allocations_.upper_bound(address);
  if (at == allocations_.begin()) return allocations_.end();
  at = std::prev(at);
  return at->second.range.contains(address) ? at : allocations_.end();
}

std::optional<Allocation> Memory::find(std::uint64_t address) const {
  const std::lock_guard lock(mutex_);
  const auto at = holder(address);
  return at == allocations_.end() ? std::nullopt : std::optional(at->second);
}

std::byte* Memory::bytes_of(ByteRange range, bool to_write) const {
  const std::lock_guard lock(mutex_);
  const auto first = holder(range.begin);
  if (first == allocations_.end()) return nullptr;
  for (auto at = first;; ++at) {
    if (to_write ? !at->second.writable : !at->second.readable) return nullptr;
    const std::uint64_t reached = at->second.range.end;
    if (reached >= range.end) break;
    const auto next = std::next(at);
    const bool goes_on = next != allocations_.end() && next->first == reached &&
                         at->second.kind == MemoryKind::kVirtual && next->second.kind == MemoryKind::kVirtual;
    if (!goes_on) return nullptr;
  }
  return first->second.bytes + (range.begin - first->first);
}

ByteRange Memory::take_addresses(std::uint64_t size_bytes, std::uint64_t alignment, std::uint64_t wanted) {
  const std::lock_guard lock(mutex_);
  const ByteRange exact = ByteRange::of(wanted, size_bytes);
  if (wanted % alignment == 0 && space_.contains(wanted) && space_.take_exactly(exact)) return exact;
  return space_.take(size_bytes, alignment);
}

void Memory::give_back_addresses(ByteRange range) {
  const std::lock_guard lock(mutex_);
  space_.give_back(range);
}

void Memory::back_with(ByteRange range, int file, std::uint64_t offset) {
  const std::lock_guard lock(mutex_);
  space_.back_with(range, file, offset);
}

void Memory::empty(ByteRange range) {
  const std::lock_guard lock(mutex_);
  space_.empty(range);
}

}  // namespace faultline::vgpu
