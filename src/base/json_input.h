// JSON that others wrote, within bounds. A document may be nested so deeply that whoever walks it runs out of stack, or hold a million members that a
// writer's order has to be kept of; nothing that Faultline reads is like that, so it is refused before anything is built from it.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

#include "base/result.h"

namespace faultline {

inline constexpr std::size_t kMostJsonBytes = std::size_t{16} << 20;
inline constexpr std::size_t kMostJsonDepth = 64;
inline constexpr std::size_t kMostJsonValues = 1'000'000;
inline constexpr std::size_t kMostJsonMembers = 512;  // of one object

// Ok when the text is JSON within these bounds; the Error says which it is not.
Status check_json(std::string_view text);

template <class Json = nlohmann::json>
Result<Json> parse_json(std::string_view text) {
  if (Status checked = check_json(text); !checked) return checked.error();
  return Json::parse(text, nullptr, false);
}

}  // namespace faultline
