// A size as a message prints it: "5.20 GiB" stands for every byte count that rounds to it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/byte_interval.h"

namespace faultline {

// How the writer of the message means "GB" and how it rounds.
enum class SizeStyle : std::uint8_t {
  kTorch,  // KiB, MiB, GiB to two decimals; "GB" from elsewhere may mean either unit, and covers both
  kMetal,  // PyTorch's MPS backend: "GB" is 2^30
  kXla,    // TensorFlow and XLA cut before they round
};

struct SizeToken {
  ByteInterval bytes;
  std::size_t length = 0;  // characters, unit included
};

// The size that starts at `at`: "2.00 GiB", "512 bytes", "1,073,741,824 bytes", "1900,00 MiB", "8.41G". Nothing when no unit follows.
std::optional<SizeToken> parse_printed_size(std::string_view text, std::size_t at, SizeStyle style = SizeStyle::kTorch);

}  // namespace faultline
