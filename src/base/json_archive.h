// The fields of a struct, named once and used both ways: a function template fields(archive, value) lists them, a JsonWriter makes JSON of them and a
// JsonReader fills them from JSON that anybody may have changed. What is missing there, or of another kind, leaves its default.
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace faultline {

using Json = nlohmann::ordered_json;  // fields in the order the contract lists them

// How many values an enum has whose words are name_of(value), from 0 on.
template <class T>
inline constexpr std::size_t kValueCount = 0;
template <class T>
concept Named = (kValueCount<T> != 0);

template <class T>
Json json_of(const T& value);
template <class T>
void read_json(const Json& json, T& value);

class JsonWriter {
 public:
  static constexpr bool kWrites = true;
  explicit JsonWriter(Json& json) : json_(json) {}

  void operator()(const char* name, const auto& value) { json_[name] = json_of(value); }
  void unless_empty(const char* name, const auto& value) {
    if (!value.empty()) json_[name] = json_of(value);
  }
  // Null where a condition does not hold.
  void or_null(const char* name, const auto& value, bool is_there) {
    json_[name] = is_there ? json_of(value) : Json(nullptr);
  }
  // An object inside, or null.
  void group(const char* name, bool& is_there, auto inside) {
    json_[name] = nullptr;
    if (!is_there) return;
    JsonWriter writer(json_[name] = Json::object());
    inside(writer);
  }
  // A list whose members are written by what stands around them.
  void each(const char* name, auto& list, auto inside) {
    Json& array = json_[name] = Json::array();
    for (auto& item : list) {
      JsonWriter writer(array.emplace_back(Json::object()));
      inside(writer, item);
    }
  }
  // What follows from the other fields, and is not read again.
  void derived(const char* name, const auto& value) { json_[name] = json_of(value); }

 private:
  Json& json_;
};

class JsonReader {
 public:
  static constexpr bool kWrites = false;
  explicit JsonReader(const Json& json) : json_(json) {}

  void operator()(const char* name, auto& value) {
    if (const auto found = json_.find(name); found != json_.end()) read_json(*found, value);
  }
  void unless_empty(const char* name, auto& value) { (*this)(name, value); }
  void or_null(const char* name, auto& value, bool) { (*this)(name, value); }
  void group(const char* name, bool& is_there, auto inside) {
    const auto found = json_.find(name);
    is_there = found != json_.end() && found->is_object();
    if (!is_there) return;
    JsonReader reader(*found);
    inside(reader);
  }
  void each(const char* name, auto& list, auto inside) {
    const auto found = json_.find(name);
    if (found == json_.end() || !found->is_array()) return;
    for (const Json& item : *found) {
      if (!item.is_object()) continue;
      JsonReader reader(item);
      inside(reader, list.emplace_back());
    }
  }
  void derived(const char*, const auto&) {}

 private:
  const Json& json_;
};

template <class T>
inline constexpr bool kIsVector = false;
template <class T>
inline constexpr bool kIsVector<std::vector<T>> = true;
template <class T>
inline constexpr bool kIsOptional = false;
template <class T>
inline constexpr bool kIsOptional<std::optional<T>> = true;
// Names with numbers, in order: an object.
using NamedBytes = std::vector<std::pair<std::string, std::uint64_t>>;
template <class T>
concept NamedNumbers = std::same_as<T, NamedBytes> || std::same_as<T, std::map<std::string, std::uint64_t>>;

template <class T>
Json json_of(const T& value) {
  if constexpr (NamedNumbers<T>) {
    Json json = Json::object();
    for (const auto& [name, bytes] : value) json[name] = bytes;
    return json;
  } else if constexpr (Named<T>) {
    return name_of(value);
  } else if constexpr (kIsVector<T>) {
    Json json = Json::array();
    for (const auto& item : value) json.push_back(json_of(item));
    return json;
  } else if constexpr (kIsOptional<T>) {
    return value ? json_of(*value) : Json(nullptr);
  } else if constexpr (requires(JsonWriter & writer, T & fields_of) { fields(writer, fields_of); }) {
    Json json = Json::object();
    JsonWriter writer(json);
    fields(writer, const_cast<T&>(value));  // a writer changes nothing
    return json;
  } else {
    return value;
  }
}

template <class T>
void read_json(const Json& json, T& value) {
  if constexpr (NamedNumbers<T>) {
    if (!json.is_object()) return;
    value.clear();
    for (const auto& [name, bytes] : json.items())
      value.insert(value.end(), {name, bytes.is_number_unsigned() ? bytes.template get<std::uint64_t>() : 0});
  } else if constexpr (Named<T>) {
    if (!json.is_string()) return;
    for (std::size_t at = 0; at < kValueCount<T>; ++at) {
      if (name_of(static_cast<T>(at)) == json.get_ref<const std::string&>()) value = static_cast<T>(at);
    }
  } else if constexpr (kIsVector<T>) {
    if (!json.is_array()) return;
    for (const Json& item : json) read_json(item, value.emplace_back());
  } else if constexpr (kIsOptional<T>) {
    using Inside = typename T::value_type;
    if (std::same_as<Inside, bool> ? !json.is_boolean() : !json.is_object()) return;
    read_json(json, value.emplace());
  } else if constexpr (requires(JsonReader & reader) { fields(reader, value); }) {
    if (!json.is_object()) return;
    JsonReader reader(json);
    fields(reader, value);
  } else if constexpr (std::same_as<T, bool>) {
    if (json.is_boolean()) value = json.get<bool>();
  } else if constexpr (std::integral<T>) {
    if (json.is_number_unsigned() &&
        json.get<std::uint64_t>() <= static_cast<std::uint64_t>(std::numeric_limits<T>::max()))
      value = static_cast<T>(json.get<std::uint64_t>());
    else if (json.is_number_integer() && !json.is_number_unsigned() && std::in_range<T>(json.get<std::int64_t>()))
      value = static_cast<T>(json.get<std::int64_t>());
  } else if constexpr (std::floating_point<T>) {
    if (json.is_number()) value = json.get<T>();
  } else if constexpr (std::same_as<T, std::string>) {
    if (json.is_string()) value = json.get<std::string>();
  }
}

}  // namespace faultline
