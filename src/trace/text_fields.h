// What the readers of the text form's lines share: refusals, and fields that become numbers.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <limits>
#include <string>

#include "base/result.h"
#include "base/units.h"
#include "trace/text_words.h"

namespace faultline::text {

using Field = LineReader::Field;

template <class... Args>
Error bad(fmt::format_string<Args...> format, Args&&... args) {
  return Error{fmt::format(format, std::forward<Args>(args)...), {}, {}};
}

inline std::string spelled(const Field& field) {
  return field.key.empty() ? field.value : field.key + "=" + field.value;
}
inline Status unknown_field(const Field& field) { return bad("'{}' means nothing here", spelled(field)); }
inline bool starts_like_number(const Field& field) {
  return !field.quoted && !field.value.empty() && field.value[0] >= '0' && field.value[0] <= '9';
}

template <class T>
Status set_number(const Field& field, T& to) {
  const auto value = number_of(field.value);
  if (!value || *value > std::numeric_limits<T>::max())
    return bad("'{}' is not a number that fits here", spelled(field));
  to = static_cast<T>(*value);
  return Ok{};
}
template <class T>
Status set_number(std::string_view value, T& to) {
  return set_number(Field{{}, std::string(value), false, {}}, to);
}

// 4000000, 4MiB.
inline Status set_size(const Field& field, std::uint64_t& to) {
  if (const auto value = number_of(field.value)) {
    to = *value;
    return Ok{};
  }
  const Result<std::uint64_t> value = parse_bytes(field.value);
  if (!value) return value.error();
  to = *value;
  return Ok{};
}

// Every field left in the line, one after the other.
template <class Take>
Status each_field(LineReader& line, Take take) {
  while (!line.at_end()) {
    const Result<Field> field = line.field();
    if (!field) return field.error();
    if (!field->suffix.empty()) return bad("'{}' stands right behind a quoted text", field->suffix);
    if (Status status = take(*field); !status) return status;
  }
  return Ok{};
}

}  // namespace faultline::text
