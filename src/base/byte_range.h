// A half-open range of addresses: [begin, end). The one way this code base speaks of a piece of memory.
#pragma once

#include <compare>
#include <cstdint>

namespace faultline {

struct ByteRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;

  static constexpr ByteRange of(std::uint64_t address, std::uint64_t size_bytes) {
    return {address, address + size_bytes};
  }
  constexpr std::uint64_t size() const { return end - begin; }
  constexpr bool empty() const { return begin >= end; }
  constexpr bool contains(std::uint64_t address) const { return begin <= address && address < end; }
  constexpr bool contains(ByteRange other) const { return begin <= other.begin && other.end <= end; }
  constexpr bool overlaps(ByteRange other) const { return begin < other.end && other.begin < end; }
  friend constexpr auto operator<=>(ByteRange, ByteRange) = default;
};

}  // namespace faultline
