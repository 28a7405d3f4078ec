// A size as a message prints it: "5.20 GiB" stands for every byte count that rounds to it.
//
// Messages round to two decimals, so 5.20 GiB hides up to ten megabytes. Every claim made from such numbers is made with these intervals:
// something is certain only when it holds for all byte counts that could have been printed this way. Arithmetic saturates at both ends.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

namespace faultline {

struct PrintedBytes {
  std::uint64_t min = 0;
  std::uint64_t max = 0;

  static constexpr PrintedBytes exactly(std::uint64_t size_bytes) { return {size_bytes, size_bytes}; }
  // The one number to show where an interval would be noise.
  constexpr std::uint64_t middle() const { return min + (max - min) / 2; }
  friend constexpr bool operator==(PrintedBytes, PrintedBytes) = default;
};

constexpr PrintedBytes operator+(PrintedBytes a, PrintedBytes b) {
  constexpr std::uint64_t kTop = std::numeric_limits<std::uint64_t>::max();
  return {a.min > kTop - b.min ? kTop : a.min + b.min, a.max > kTop - b.max ? kTop : a.max + b.max};
}
constexpr PrintedBytes operator-(PrintedBytes a, PrintedBytes b) {
  return {a.min > b.max ? a.min - b.max : 0, a.max > b.min ? a.max - b.min : 0};
}
constexpr bool surely_less(PrintedBytes a, PrintedBytes b) {
  return a.max < b.min;
}
constexpr bool surely_at_least(PrintedBytes a, PrintedBytes b) {
  return a.min >= b.max;
}

// How the writer of the message means "GB" and how it rounds.
enum class SizeStyle : std::uint8_t {
  kTorch,  // KiB, MiB, GiB to two decimals; "GB" from elsewhere may mean either unit, and covers both
  kMetal,  // PyTorch's MPS backend: "GB" is 2^30
  kXla,    // TensorFlow and XLA cut before they round
};

struct SizeToken {
  PrintedBytes bytes;
  std::size_t length = 0;  // characters, unit included
};

// The size that starts at `at`: "2.00 GiB", "512 bytes", "1,073,741,824 bytes", "1900,00 MiB", "8.41G". Nothing when no unit follows.
std::optional<SizeToken> parse_printed_size(std::string_view text, std::size_t at, SizeStyle style = SizeStyle::kTorch);

}  // namespace faultline
