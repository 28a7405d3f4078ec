// A number of bytes that is known to lie between two others; an exact number is an interval of width 0.
//
// Messages round to two decimals, so 5.20 GiB hides up to ten megabytes. Every claim made from such numbers is made with these intervals:
// something is certain only when it holds for all byte counts inside. Arithmetic saturates at both ends.
#pragma once

#include <cstdint>
#include <limits>

namespace faultline {

struct ByteInterval {
  std::uint64_t min = 0;
  std::uint64_t max = 0;

  static constexpr ByteInterval exactly(std::uint64_t size_bytes) { return {size_bytes, size_bytes}; }
  // The one number to show where an interval would be noise.
  constexpr std::uint64_t middle() const { return min + (max - min) / 2; }
  friend constexpr bool operator==(ByteInterval, ByteInterval) = default;
};

constexpr ByteInterval operator+(ByteInterval a, ByteInterval b) {
  constexpr std::uint64_t kTop = std::numeric_limits<std::uint64_t>::max();
  return {a.min > kTop - b.min ? kTop : a.min + b.min, a.max > kTop - b.max ? kTop : a.max + b.max};
}
constexpr ByteInterval operator-(ByteInterval a, ByteInterval b) {
  return {a.min > b.max ? a.min - b.max : 0, a.max > b.min ? a.max - b.min : 0};
}
constexpr bool surely_less(ByteInterval a, ByteInterval b) { return a.max < b.min; }
constexpr bool surely_at_least(ByteInterval a, ByteInterval b) { return a.min >= b.max; }

}  // namespace faultline
