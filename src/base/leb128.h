// LEB128: numbers in groups of seven bits, lowest first, as DWARF and our own files write them. next() gives the bytes one after the other.
#pragma once

#include <cstdint>

namespace faultline {

// What does not fit into 64 bits is dropped.
template <class Next>
std::uint64_t read_uleb(Next next) {
  std::uint64_t value = 0;
  for (unsigned shift = 0;; shift += 7) {
    const std::uint8_t byte = next();
    if (shift < 64) value |= std::uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return value;
  }
}

template <class Next>
std::int64_t read_sleb(Next next) {
  std::uint8_t last = 0;
  unsigned bits = 0;
  const std::uint64_t value = read_uleb([&] {
    last = next();
    bits += 7;
    return last;
  });
  return static_cast<std::int64_t>((last & 0x40) != 0 && bits < 64 ? value | ~std::uint64_t{0} << bits : value);
}

// For numbers of at most so many bytes that fit into 64 bits: false for any other.
template <class Next>
bool read_varint(Next next, std::uint64_t& value, unsigned most_bytes = 10) {
  value = 0;
  for (unsigned shift = 0; shift < 7 * most_bytes; shift += 7) {
    const std::uint64_t byte = next();
    value |= (byte & 0x7f) << shift;
    if (byte < 0x80) return shift < 63 || byte < 2;
  }
  return false;
}

}  // namespace faultline
