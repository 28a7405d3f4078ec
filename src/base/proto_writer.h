// Protobuf's wire format, written: the fields of one message, one after the other. What reads it is base/protobuf.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace faultline {

class ProtoWriter {
 public:
  void number(std::uint32_t field, std::uint64_t value) {
    varint(std::uint64_t{field} << 3);
    varint(value);
  }
  // A text, which must be UTF-8, or bytes.
  void text(std::uint32_t field, std::string_view value) {
    varint(std::uint64_t{field} << 3 | 2);
    varint(value.size());
    bytes_ += value;
  }
  void message(std::uint32_t field, const ProtoWriter& inside) { text(field, inside.bytes_); }

  std::size_t size() const { return bytes_.size(); }
  std::string_view bytes() const { return bytes_; }
  std::string take() { return std::exchange(bytes_, {}); }

 private:
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }

  std::string bytes_;
};

}  // namespace faultline
