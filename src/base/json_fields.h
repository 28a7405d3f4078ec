// Fields of JSON that others wrote: what is missing, or of another type, reads as nothing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

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

template <typename Json>
bool yes(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found != json.end() && found->is_boolean() && found->template get<bool>();
}

// Of a list of words; what is no word is an empty one.
template <typename Json>
std::vector<std::string> names_of(const Json& json, const char* name) {
  std::vector<std::string> names;
  const auto found = json.find(name);
  if (found == json.end() || !found->is_array()) return names;
  for (const auto& item : *found) names.push_back(item.is_string() ? item.template get<std::string>() : std::string());
  return names;
}

}  // namespace faultline
