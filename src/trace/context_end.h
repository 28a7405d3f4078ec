// How a Free or a HostUnpin tells that nobody gave the memory back: its context ended and took it along. In Event::extra, which is 0 for a free of the program's own.
#pragma once

#include <cstdint>

namespace faultline {

inline constexpr std::uint32_t kWithItsContext = 1;

}  // namespace faultline
