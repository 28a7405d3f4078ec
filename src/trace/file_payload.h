// A definition's payload: how it is put together, and how it is read field by field. file_writer.cpp and file_definitions.cpp come here.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "trace/file_chunks.h"
#include "trace/file_codec.h"

namespace faultline {

// One of ordinary size takes no memory but its own: definitions are written where a program launches its kernels.
class Payload {
 public:
  Payload& number(std::uint64_t value) {
    std::uint8_t bytes[kMostVarintBytes];
    bytes_.append(bytes, put_varint(bytes, value));
    return *this;
  }
  Payload& text(std::string_view value) {
    number(value.size());
    const auto* const bytes = reinterpret_cast<const std::uint8_t*>(value.data());
    bytes_.append(bytes, bytes + value.size());
    return *this;
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

  std::uint64_t number(std::uint64_t most = std::numeric_limits<std::uint64_t>::max()) {
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
  template <class T>
  T as() {
    return static_cast<T>(number(std::numeric_limits<T>::max()));
  }
  std::uint32_t id() { return static_cast<std::uint32_t>(number(most_id_)); }
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
  std::size_t left() const { return payload_.size() - at_; }

 private:
  Bytes payload_;
  std::uint32_t most_id_;
  std::size_t at_ = 0;
  bool ok_ = true;
};

}  // namespace faultline
