// Which addresses the program has taken from the driver.
//
// KnownPages answers "could this word be a pointer?" for every word of every launch's parameters, so it is a table of 2 MiB pages that readers
// look into without a lock. LiveAllocations is the exact map, behind one lock, for frees; PhysicalMemory knows what was created and is mapped.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>

#include "trace/trace.h"

namespace faultline::capture {

class KnownPages {
 public:
  bool contains(std::uint64_t address) const {
    if (address >= kEnd || address - lowest_.load(std::memory_order_acquire) >= span_.load(std::memory_order_relaxed))
      return false;
    const std::uint64_t page = address >> kPageBits;
    const Leaf* leaf = leaves_[page >> kLeafBits].load(std::memory_order_acquire);
    return leaf != nullptr && (*leaf)[page & kLeafMask].load(std::memory_order_relaxed) != 0;
  }
  // One caller at a time. Beyond kMostLeaves nothing is known of a part of the address space that is new.
  void add(std::uint64_t address, std::uint64_t size_bytes);
  void remove(std::uint64_t address, std::uint64_t size_bytes);

 private:
  static constexpr unsigned kPageBits = 21;
  static constexpr unsigned kAddressBits = 49;
  static constexpr std::uint64_t kEnd = std::uint64_t{1} << kAddressBits;
  static constexpr unsigned kLeafBits = 14;           // a leaf covers 32 GiB
  static constexpr std::uint32_t kMostLeaves = 1024;  // 64 MiB of them, for 32 TiB of addresses
  static constexpr std::uint64_t kLeafMask = (1u << kLeafBits) - 1;
  using Leaf = std::atomic<std::uint32_t>[1 << kLeafBits];

  void change(std::uint64_t address, std::uint64_t size_bytes, bool more);

  std::uint32_t leaf_count_ = 0;
  std::atomic<std::uint64_t> lowest_{0};
  std::atomic<std::uint64_t> span_{0};
  std::atomic<Leaf*> leaves_[std::size_t{1} << (kAddressBits - kPageBits - kLeafBits)] = {};
};

struct LiveAllocation {
  AllocationId id;
  std::uint64_t size_bytes = 0;
  HeapId heap;
  HeapKind kind = HeapKind::kOther;
  std::uint16_t device = 0;
  const void* context = nullptr;  // which takes it along when it ends; null: none does
};

constexpr bool takes_device_memory(HeapKind kind) {
  return kind == HeapKind::kDriver || kind == HeapKind::kStreamOrderedPool;
}

class LiveAllocations {
 public:
  static constexpr std::size_t kMost = 1 << 19;
  // False: there are too many to keep one more. The caller tells nothing of it, neither now nor when it is freed.
  bool add(std::uint64_t address, const LiveAllocation& allocation);
  // Some were not kept, so a free of something unknown may be one of theirs.
  bool has_left_out() const { return has_left_out_.load(std::memory_order_relaxed); }
  // The allocation that begins there, taken out, if it is of an accepted kind.
  template <class Accepts>
  std::optional<LiveAllocation> take(std::uint64_t address, Accepts accepts) {
    const std::lock_guard hold(lock_);
    const auto at = by_address_.find(address);
    if (at == by_address_.end() || !accepts(at->second.kind)) return std::nullopt;
    const LiveAllocation allocation = at->second;
    by_address_.erase(at);
    leave(address, allocation);
    return allocation;
  }
  // All that a context takes along, taken out: each(address, allocation).
  template <class Each>
  void take_all_of(const void* context, Each each) {
    const std::lock_guard hold(lock_);
    for (auto at = by_address_.begin(); at != by_address_.end();) {
      if (at->second.context != context) {
        ++at;
        continue;
      }
      leave(at->first, at->second);
      each(at->first, at->second);
      at = by_address_.erase(at);
    }
  }
  AllocationId beginning_at(std::uint64_t address) const;  // 0: none
  void add_mapping(std::uint64_t address, std::uint64_t size_bytes, std::uint16_t device);
  void remove_mapping(std::uint64_t address, std::uint64_t size_bytes, std::uint16_t device);
  // What the program has of a device's memory: plain and stream-ordered allocations, and mappings.
  std::uint64_t device_bytes(std::uint16_t device);
  const KnownPages& pages() const { return pages_; }

 private:
  void leave(std::uint64_t address, const LiveAllocation& allocation);  // lock_ held

  mutable std::mutex lock_;
  std::map<std::uint64_t, LiveAllocation> by_address_;
  std::atomic<bool> has_left_out_{false};
  std::map<std::uint16_t, std::uint64_t> device_bytes_;
  KnownPages pages_;
};

// Which device a physical allocation (cuMemCreate) lies on; -1: not a device's.
class PhysicalMemory {
 public:
  void created(std::uint64_t handle, int device) {
    const std::lock_guard hold(lock_);
    devices_[handle] = device;
  }
  void released(std::uint64_t handle) {
    const std::lock_guard hold(lock_);
    devices_.erase(handle);
  }
  // Unknown handles (imported ones) are taken to be the current device's.
  int device(std::uint64_t handle, int otherwise) {
    const std::lock_guard hold(lock_);
    const auto at = devices_.find(handle);
    return at != devices_.end() ? at->second : otherwise;
  }
  void mapped(std::uint64_t address, std::uint64_t size_bytes, int device) {
    const std::lock_guard hold(lock_);
    mappings_[address] = {size_bytes, device};
  }
  // One unmap may cover several mappings.
  template <class Each>
  void unmapped(std::uint64_t address, std::uint64_t size_bytes, Each each) {
    const std::lock_guard hold(lock_);
    for (auto at = mappings_.lower_bound(address); at != mappings_.end() && at->first < address + size_bytes;
         at = mappings_.erase(at)) {
      each(at->first, at->second.size_bytes, at->second.device);
    }
  }

 private:
  struct Mapping {
    std::uint64_t size_bytes;
    int device;
  };
  std::mutex lock_;
  std::map<std::uint64_t, int> devices_;
  std::map<std::uint64_t, Mapping> mappings_;
};

}  // namespace faultline::capture
