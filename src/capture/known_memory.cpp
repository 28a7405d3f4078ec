#include "capture/known_memory.h"

#include <algorithm>

namespace faultline::capture {

void KnownPages::change(std::uint64_t address, std::uint64_t size_bytes, bool more) {
  if (size_bytes == 0 || address >= kEnd || size_bytes > kEnd - address) return;
  for (std::uint64_t page = address >> kPageBits; page <= (address + size_bytes - 1) >> kPageBits; ++page) {
    std::atomic<Leaf*>& slot = leaves_[page >> kLeafBits];
    Leaf* leaf = slot.load(std::memory_order_relaxed);
    if (leaf == nullptr) {
      if (!more || leaf_count_ == kMostLeaves) continue;
      leaf = reinterpret_cast<Leaf*>(new std::atomic<std::uint32_t>[1 << kLeafBits]());
      slot.store(leaf, std::memory_order_release);
      ++leaf_count_;
    }
    std::atomic<std::uint32_t>& users = (*leaf)[page & kLeafMask];
    const std::uint32_t now = users.load(std::memory_order_relaxed);
    users.store(more ? now + 1 : now - (now > 0 ? 1 : 0), std::memory_order_relaxed);
  }
}

void KnownPages::add(std::uint64_t address, std::uint64_t size_bytes) {
  if (size_bytes == 0 || address >= kEnd || size_bytes > kEnd - address) return;
  change(address, size_bytes, true);
  const std::uint64_t lowest = lowest_.load(std::memory_order_relaxed), span = span_.load(std::memory_order_relaxed);
  const std::uint64_t first = span == 0 ? address : std::min(lowest, address);
  const std::uint64_t last = std::max(span == 0 ? 0 : lowest + span, address + size_bytes);
  // The span grows before the start moves down: a reader that sees only one of them looks at more than there is, and the page decides.
  span_.store(last - first, std::memory_order_relaxed);
  lowest_.store(first, std::memory_order_release);
}

void KnownPages::remove(std::uint64_t address, std::uint64_t size_bytes) { change(address, size_bytes, false); }

void LiveAllocations::leave(std::uint64_t address, const LiveAllocation& allocation) {
  pages_.remove(address, allocation.size_bytes);
  if (takes_device_memory(allocation.kind)) device_bytes_[allocation.device] -= allocation.size_bytes;
}

bool LiveAllocations::add(std::uint64_t address, const LiveAllocation& allocation) {
  const std::lock_guard hold(lock_);
  // What began there before went away unseen, with its context.
  if (const auto before = by_address_.find(address); before != by_address_.end()) leave(address, before->second);
  if (by_address_.size() >= kMost && !by_address_.contains(address)) {
    has_left_out_.store(true, std::memory_order_relaxed);
    return false;
  }
  by_address_[address] = allocation;
  pages_.add(address, allocation.size_bytes);
  if (takes_device_memory(allocation.kind)) device_bytes_[allocation.device] += allocation.size_bytes;
  return true;
}

AllocationId LiveAllocations::beginning_at(std::uint64_t address) const {
  const std::lock_guard hold(lock_);
  const auto at = by_address_.find(address);
  return at == by_address_.end() ? AllocationId() : at->second.id;
}

void LiveAllocations::add_mapping(std::uint64_t address, std::uint64_t size_bytes, std::uint16_t device) {
  const std::lock_guard hold(lock_);
  pages_.add(address, size_bytes);
  device_bytes_[device] += size_bytes;
}

void LiveAllocations::remove_mapping(std::uint64_t address, std::uint64_t size_bytes, std::uint16_t device) {
  const std::lock_guard hold(lock_);
  pages_.remove(address, size_bytes);
  device_bytes_[device] -= size_bytes;
}

std::uint64_t LiveAllocations::device_bytes(std::uint16_t device) {
  const std::lock_guard hold(lock_);
  return device_bytes_[device];
}

}  // namespace faultline::capture
