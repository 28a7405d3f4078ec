// All memory that the devices know: device allocations, pieces of stream-ordered pools, virtual mappings, pinned and managed host memory.
//
// One map from address to allocation answers every question (may this copy run, what is this pointer, may this be freed); one account per device says
// how much of its capacity is taken. The account goes by blocks of 2 MiB as the real driver's does: a large allocation takes whole blocks, small ones
// of a context share them. Freed addresses are not given out again for long (address_space.h).
//
// Thread-safe; one lock, held for no longer than a lookup or a mapping call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/byte_range.h"
#include "driver/functions.h"
#include "vgpu/address_space.h"

namespace faultline::vgpu {

enum class MemoryKind : std::uint8_t {
  kDevice,
  kPool,        // from a stream-ordered pool
  kVirtual,     // one mapping of cuMemMap
  kPinned,      // host memory of cuMemHostAlloc
  kRegistered,  // host memory of the program, made known with cuMemHostRegister
  kManaged,
};

struct Allocation {
  ByteRange range;
  MemoryKind kind = MemoryKind::kDevice;
  CUdevice device = 0;
  CUcontext context = nullptr;  // whose end is its end; null for pools and mappings
  CUmemoryPool pool = nullptr;
  std::byte* bytes = nullptr;  // where the host finds what is at range.begin
  std::uint64_t id = 0;
  unsigned flags = 0;    // as given when made
  bool readable = true;  // a mapping is neither until cuMemSetAccess says so
  bool writable = true;
  bool free_asked = false;  // cuMemFreeAsync was called; its stream is not there yet

  bool on_host() const {
    return kind == MemoryKind::kPinned || kind == MemoryKind::kRegistered || kind == MemoryKind::kManaged;
  }
};

class Memory {
 public:
  static Memory& get();

  // Device memory of a context. Refuses with out of memory.
  std::uint64_t allocate(CUcontext context, CUdevice device, std::uint64_t size_bytes);
  // Pinned and managed memory of a context: a host address that is its device address too.
  std::uint64_t allocate_host(CUcontext context, CUdevice device, MemoryKind kind, std::uint64_t size_bytes,
                              unsigned flags);
  // Makes an allocation known whose memory the caller looks after. Refuses with `overlap` where one is already.
  void add(Allocation allocation, CUresult overlap = CUDA_ERROR_INVALID_VALUE);
  // Forgets, and gives back what allocate() and allocate_host() took. Refuses (invalid value) unless an allocation of such a kind begins there.
  Allocation remove(std::uint64_t address, std::initializer_list<MemoryKind> kinds);
  void remove_all_of(CUcontext context);

  std::optional<Allocation> find(std::uint64_t address) const;  // that holds the address
  // All of the range, as one piece of host memory: inside one allocation, or across mappings that touch. Null: it is not.
  std::byte* bytes_of(ByteRange range, bool to_write) const;
  bool device_address(std::uint64_t address) const { return space_.contains(address); }
  // of the allocation that begins there
  template <class Change>
  bool change(std::uint64_t address, const Change& how) {
    const std::lock_guard lock(mutex_);
    const auto at = allocations_.find(address);
    return at != allocations_.end() && how(at->second);
  }
  template <class Change>
  void change_all_in(ByteRange range, const Change& how) {
    const std::lock_guard lock(mutex_);
    for (auto at = allocations_.lower_bound(range.begin); at != allocations_.end() && at->first < range.end; ++at)
      how(at->second);
  }

  // The account.
  bool charge(CUdevice device, std::uint64_t size_bytes);  // false: over capacity, and nothing was taken
  void discharge(CUdevice device, std::uint64_t size_bytes);
  std::uint64_t taken(CUdevice device) const;

  // Addresses without an account, for pools and virtual memory.
  ByteRange take_addresses(std::uint64_t size_bytes, std::uint64_t alignment, std::uint64_t wanted = 0);
  void give_back_addresses(ByteRange range);
  void back_with(ByteRange range, int file, std::uint64_t offset);
  void empty(ByteRange range);
  std::byte* backing(std::uint64_t address) const { return space_.backing(address); }

 private:
  Memory();
  using Allocations = std::map<std::uint64_t, Allocation>;
  Allocations::const_iterator holder(std::uint64_t address) const;
  std::optional<ByteRange> take_blocks(CUdevice device, std::uint64_t size_bytes);
  std::optional<ByteRange> take_small(CUcontext context, CUdevice device, std::uint64_t size_bytes);
  std::optional<ByteRange> take_device_range(CUcontext context, CUdevice device, std::uint64_t size_bytes);
  void release(const Allocation& allocation);

  mutable std::mutex mutex_;
  AddressSpace space_;
  Allocations allocations_;
  std::map<CUcontext, std::map<std::uint64_t, RangeAllocator>> small_blocks_;  // by address
  std::vector<std::uint64_t> taken_bytes_;                                     // by device
  std::uint64_t next_id_ = 1;
};

}  // namespace faultline::vgpu
