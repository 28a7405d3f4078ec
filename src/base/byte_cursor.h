// A cursor over bytes that may lie. Every read is checked; the first that does not fit sticks, and all later ones give zero, so that a reader can
// take a whole header and ask ok() once.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "base/leb128.h"

namespace faultline {

using Bytes = std::span<const std::uint8_t>;

class ByteCursor {
 public:
  explicit ByteCursor(Bytes bytes, std::uint64_t offset = 0)
      : bytes_(bytes), at_(offset), ok_(offset <= bytes.size()) {}

  bool ok() const { return ok_; }
  std::uint64_t offset() const { return at_; }
  std::uint64_t remaining() const { return ok_ ? bytes_.size() - at_ : 0; }

  std::uint8_t u8() { return number<std::uint8_t>(); }
  std::uint16_t u16() { return number<std::uint16_t>(); }
  std::uint32_t u32() { return number<std::uint32_t>(); }
  std::uint64_t u64() { return number<std::uint64_t>(); }
  std::uint64_t uleb() {
    return read_uleb([&] { return u8(); });
  }
  std::int64_t sleb() {
    return read_sleb([&] { return u8(); });
  }
  Bytes take(std::uint64_t count) {
    if (!fits(count)) return {};
    const Bytes taken = bytes_.subspan(static_cast<std::size_t>(at_), static_cast<std::size_t>(count));
    at_ += count;
    return taken;
  }
  void skip(std::uint64_t count) { (void)take(count); }
  // Up to the next NUL, which is passed over; fails where there is none.
  std::string_view text() {
    if (!ok_) return {};
    const auto* const start = reinterpret_cast<const char*>(bytes_.data()) + at_;
    const void* const end = remaining() == 0 ? nullptr : std::memchr(start, 0, static_cast<std::size_t>(remaining()));
    if (end == nullptr) {
      ok_ = false;
      return {};
    }
    const std::string_view found(start, static_cast<std::size_t>(static_cast<const char*>(end) - start));
    at_ += found.size() + 1;
    return found;
  }

 private:
  bool fits(std::uint64_t count) {
    if (count > remaining()) ok_ = false;
    return ok_;
  }
  template <class Number>
  Number number() {
    if (!fits(sizeof(Number))) return 0;
    Number value;
    std::memcpy(&value, bytes_.data() + at_, sizeof value);
    at_ += sizeof value;
    return value;
  }

  Bytes bytes_;
  std::uint64_t at_;
  bool ok_;
};

inline std::string_view text_at(Bytes bytes, std::uint64_t offset) { return ByteCursor(bytes, offset).text(); }

}  // namespace faultline
