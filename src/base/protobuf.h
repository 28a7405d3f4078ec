// Protobuf's wire format, field by field, of bytes that may lie. No schema: a reader asks for the numbers that it knows and passes the others by.
//
// Nothing is allocated and nothing is copied; a message inside a message is read by another reader over its bytes. The first damage ends the reading: ok() tells, offset() where.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/byte_cursor.h"

namespace faultline {

struct ProtoField {
  std::uint32_t number = 0;
  bool is_bytes = false;    // a message, a text, or numbers one after the other
  std::uint64_t value = 0;  // of any other
  Bytes bytes;
  std::string_view text() const { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }
};

class ProtoReader {
 public:
  explicit ProtoReader(Bytes bytes) : cursor_(bytes) {}

  // False at the end, and where the bytes are damaged.
  bool next(ProtoField& field) {
    if (!cursor_.ok() || cursor_.remaining() == 0) return false;
    const std::uint64_t before = cursor_.offset(), tag = varint();
    field = {};
    field.number = static_cast<std::uint32_t>(tag >> 3);
    bool known = tag >> 3 != 0 && tag >> 3 < (std::uint64_t{1} << 29);
    switch (tag & 7) {
      case 0: field.value = varint(); break;
      case 1: field.value = cursor_.u64(); break;
      case 2:
        field.is_bytes = true;
        field.bytes = cursor_.take(varint());
        break;
      case 5: field.value = cursor_.u32(); break;
      default: known = false;
    }
    if (cursor_.ok() && known && !is_damaged_) {
      read_ = cursor_.offset();
      return true;
    }
    is_damaged_ = true;
    read_ = before;
    cursor_.skip(~std::uint64_t{0});
    return false;
  }
  bool ok() const { return !is_damaged_ && cursor_.ok(); }
  std::uint64_t offset() const { return read_; }  // of what has not been read

 private:
  // Ten bytes at most.
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
      const std::uint8_t byte = cursor_.u8();
      if (shift < 64) value |= std::uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return value;
    }
    is_damaged_ = true;
    return 0;
  }

  ByteCursor cursor_;
  std::uint64_t read_ = 0;
  bool is_damaged_ = false;
};

// Calls take(number) for each number of a field that may hold one, or many packed together.
template <class Take>
void each_number(const ProtoField& field, Take take) {
  if (!field.is_bytes) return take(field.value);
  std::uint64_t value = 0;
  unsigned shift = 0;
  for (const std::uint8_t byte : field.bytes) {
    if (shift < 64) value |= std::uint64_t{byte & 0x7fu} << shift;
    shift += 7;
    if (byte >= 0x80 && shift < 70) continue;
    take(value);
    value = 0;
    shift = 0;
  }
}

}  // namespace faultline
