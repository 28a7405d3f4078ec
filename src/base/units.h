// Bytes as people write and read them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace faultline {

inline constexpr std::uint64_t kKiB = 1024;
inline constexpr std::uint64_t kMiB = 1024 * kKiB;
inline constexpr std::uint64_t kGiB = 1024 * kMiB;
inline constexpr std::uint64_t kTiB = 1024 * kGiB;

// "0 B", "512 B", "1.50 KiB", "786.00 MiB", "372.53 GiB", "3.64 TiB": the spelling PyTorch's own messages use.
std::string format_bytes(std::uint64_t size_bytes);

// "1,234,567".
std::string format_count(std::uint64_t count);

// "16GiB", "16 GB" (10^9), "512MiB", "1.5GiB", "4096" (bytes). Case does not matter; "16G" is 16 GiB.
Result<std::uint64_t> parse_bytes(std::string_view text);

}  // namespace faultline
