// A size as a person gives it on a command line.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace faultline {

// "600" and not "8589934592": some would mean GiB, some MiB, and nobody bytes.
bool lacks_unit(std::string_view text);

// As parse_bytes (base/units.h), but what lacks its unit is refused.
Result<std::uint64_t> parse_size(std::string_view text);

}  // namespace faultline
