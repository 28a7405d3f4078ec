// Device addresses, and the memory behind them.
//
//   device addresses   [ no access for the host, ever                ]   what programs get; touching one on the host is a fault, as with a real GPU
//   backing            [ readable and writable, empty until touched  ]   the same range at a fixed distance: where copies find a device address's bytes
//
// Both are reserved once, far larger than the devices' capacity, so addresses come round again late (range_allocator.h). Backing that was given back
// stays mapped and turns to zeros: an operation still in flight never faults in this library. Not thread-safe; memory.h holds the lock.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/byte_range.h"
#include "vgpu/range_allocator.h"

namespace faultline::vgpu {

constexpr std::uint64_t kBlockBytes = std::uint64_t{2} << 20;  // what the driver takes device memory by

constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t unit) { return (value + unit - 1) / unit * unit; }

class AddressSpace {
 public:
  explicit AddressSpace(std::uint64_t capacity_bytes);  // refuses the call when the process has no room

  bool contains(std::uint64_t address) const { return addresses_.range().contains(address); }
  ByteRange take(std::uint64_t size_bytes, std::uint64_t alignment);  // refuses with out of memory
  bool take_exactly(ByteRange wanted) { return addresses_.take_exactly(wanted); }
  void give_back(ByteRange range);  // also forgets what the backing held; a memory file must be gone from it (empty)

  std::byte* backing(std::uint64_t address) const { return reinterpret_cast<std::byte*>(address + distance_); }
  // Puts the pages of a memory file behind the range; empty() puts fresh zeros back.
  void back_with(ByteRange range, int file, std::uint64_t offset);
  void empty(ByteRange range);

 private:
  std::uint64_t distance_ = 0;
  RangeAllocator addresses_;
};

}  // namespace faultline::vgpu
