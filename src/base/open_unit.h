// Sizes whose unit a text leaves open: "3 GB" may be 3·10^9 or 3·2^30 bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace faultline {

// "3 GB", "112.50 MB": of a number between bounds that are those of one such unit, as the text has it; nothing for any other bounds.
std::optional<std::string> open_unit_words(std::uint64_t min_bytes, std::uint64_t max_bytes);

}  // namespace faultline
