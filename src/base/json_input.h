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
// What is made of an object takes a hundred times the three bytes that an empty one is written in.
inline constexpr std::size_t kMostJsonObjects = std::size_t{1} << 18;
inline constexpr std::size_t kMostJsonListed = std::size_t{1} << 16;  // objects in one list

// Ok when the text is JSON within these bounds; the Error says which it is not.
Status check_json(std::string_view text);

// Whether the text is JSON that is nested no deeper than that, of any size.
bool is_json_within(std::string_view text, std::size_t most_depth);

template <class Json = nlohmann::json>
Result<Json> parse_json(std::string_view text) {
  if (Status checked = check_json(text); !checked) return checked.error();
  return Json::parse(text, nullptr, false);
}

}  // namespace faultline
