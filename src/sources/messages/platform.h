// Whose device a message is about.
#pragma once

#include <cstdint>

namespace faultline {

enum class Platform : std::uint8_t { kCuda, kRocm, kAscend, kIntel, kMetal, kDirectX, kOther };

}  // namespace faultline
