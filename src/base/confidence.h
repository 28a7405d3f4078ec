// How sure a statement is: it is so · most likely · a hint.
#pragma once

#include <cstdint>

namespace faultline {

enum class Confidence : std::uint8_t { kProved, kLikely, kHint };

}  // namespace faultline
