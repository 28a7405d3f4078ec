// A definition's payload: how it is put together, and how it is read field by field. Both have the same functions, so that one list of fields
// (trace/file_fields.h) serves both; file_writer.cpp and file_definitions.cpp come here.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "trace/file_chunks.h"
#include "trace/file_codec.h"

namespace faultline {

inline constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint64_t>::max();

// One of ordinary size takes no memory but its own: definitions are written where a program launches its kernels.
class Payload {
 public:
  Payload& number(std::uint64_t value) {
    std::uint8_t bytes[kMostVarintBytes] = {};
    bytes_.append(bytes, put_varint(bytes, value));
    return *this;
  }
  Payload& text(std::string_view value) {
    number(value.size());
    const auto* const bytes = reinterpret_cast<const std::uint8_t*>(value.data());
    bytes_.append(bytes, bytes + value.size());
    return *this;
  }

  Payload& field(std::unsigned_integral auto value) { return number(value); }
  template <class Tag, class Rep>
  Payload& field(Id<Tag, Rep> id) {
    return number(id.value);
  }
  Payload& field(std::string_view value) { return text(value); }
  void signed_number(std::int64_t value) { number(zigzag(static_cast<std::uint64_t>(value))); }
  // A number as what it adds to another one.
  void step(std::uint64_t value, std::uint64_t from, bool in_blocks) {
    number(zigzag(in_blocks ? shift_down(value - from) : value - from));
  }
  template <class Enum>
  void choice(Enum value, Enum, std::type_identity_t<std::optional<Enum>> = {}) {
    number(static_cast<std::uint64_t>(value));
  }
  // Several small things in one number, and each of them taken out of it again.
  std::uint64_t said(std::uint64_t value, std::uint64_t = kNoLimit) {
    number(value);
    return value;
  }
  template <class T>
  void told(const T&, std::type_identity_t<T>) {}
  // A field at the end that older files do not have.
  template <class T>
  void added_later(const T& value, bool worth_saying = true) {
    if (worth_saying) field(value);
  }
  template <class T, class Put>
  void list(const std::vector<T>& values, std::uint64_t, Put put) {
    number(values.size());
    for (const T& value : values) put(value);
  }
  operator std::string_view() const { return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()}; }

 private:
  fmt::basic_memory_buffer<std::uint8_t, 256> bytes_;
};

// A field that is missing, too large or too long makes the whole payload bad.
class PayloadFields {
 public:
  PayloadFields(Bytes payload, std::uint32_t most_id) : payload_(payload), most_id_(most_id) {}
  bool ok() const { return ok_; }

  std::uint64_t number(std::uint64_t most = kNoLimit) {
    std::uint64_t value = 0;
    bool is_there = true;
    const auto next = [&]() -> std::uint8_t {
      is_there = at_ < payload_.size();
      return is_there ? payload_[at_++] : std::uint8_t{0};
    };
    if (read_varint(next, value) && is_there && value <= most) return value;
    ok_ = false;
    return 0;
  }
  // How many entries follow; each takes at least a byte, so no more than there are bytes.
  std::size_t count() {
    const std::uint64_t value = number();
    if (value > left()) ok_ = false;
    return ok_ ? value : 0;
  }
  std::string text() {
    const std::size_t size = count();
    std::string value(reinterpret_cast<const char*>(payload_.data()) + at_, size);
    at_ += size;
    return value;
  }

  template <std::unsigned_integral T>
  PayloadFields& field(T& value) {
    value = static_cast<T>(number(std::numeric_limits<T>::max()));
    return *this;
  }
  PayloadFields& field(bool& value) {
    value = number() != 0;
    return *this;
  }
  template <class Tag, class Rep>
  PayloadFields& field(Id<Tag, Rep>& id) {
    id.value = static_cast<Rep>(number(std::min<std::uint64_t>(most_id_, std::numeric_limits<Rep>::max())));
    return *this;
  }
  PayloadFields& field(std::string& value) {
    value = text();
    return *this;
  }
  void signed_number(std::int64_t& value) { value = static_cast<std::int64_t>(unzigzag(number())); }
  void step(std::uint64_t& value, std::uint64_t from, bool in_blocks) {
    const std::uint64_t difference = unzigzag(number());
    value = from + (in_blocks ? difference << kBlockBits : difference);
  }
  // Beyond the last it is another one, or the payload is bad.
  template <class Enum>
  void choice(Enum& value, Enum last, std::type_identity_t<std::optional<Enum>> otherwise = {}) {
    const std::uint64_t read = number(otherwise ? kNoLimit : static_cast<std::uint64_t>(last));
    value = otherwise && read > static_cast<std::uint64_t>(last) ? *otherwise : static_cast<Enum>(read);
  }
  std::uint64_t said(std::uint64_t, std::uint64_t most = kNoLimit) { return number(most); }
  template <class T>
  void told(T& value, std::type_identity_t<T> from) {
    value = from;
  }
  template <class T>
  void added_later(T& value, bool = true) {
    if (ok_ && left() != 0) field(value);
  }
  template <class T, class Take>
  void list(std::vector<T>& values, std::uint64_t most, Take take) {
    std::size_t left = count();
    ok_ &= left <= most;
    for (; left > 0 && ok_; --left) take(values.emplace_back());
  }
  std::size_t left() const { return payload_.size() - at_; }

 private:
  Bytes payload_;
  std::uint32_t most_id_;
  std::size_t at_ = 0;
  bool ok_ = true;
};

}  // namespace faultline
