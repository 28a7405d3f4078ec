// The name of the operation that ends a look at what is alive: a recording that was put together from moments has one for each of them.
#pragma once

#include <string_view>

namespace faultline {

inline constexpr std::string_view kLookMark = "look at what is alive";

}  // namespace faultline
