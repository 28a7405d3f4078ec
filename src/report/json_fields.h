// Fields of JSON that others wrote: what is missing, or of another type, reads as nothing.
#pragma once

#include <cstdint>
#include <string>

namespace faultline {

template <typename Json>
std::string text(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found != json.end() && found->is_string() ? found->template get<std::string>() : std::string();
}

template <typename Json>
std::uint64_t whole(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found != json.end() && found->is_number_unsigned() ? found->template get<std::uint64_t>() : 0;
}

}  // namespace faultline
