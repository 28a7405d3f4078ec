// One line of the log: who wrote it, when, and what.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace faultline {

struct AllocatorLine {
  std::string_view message;
  std::uint64_t thread = 0;  // 0: the line does not say
  std::int64_t time_ns = 0;  // 0: likewise
};

// "I0000 00:00:1794821189.411602   26412 bfc_allocator.cc:176] Extending …", "2024-09-01 10:00:00.123456: I tensorflow/core/…/bfc_allocator.cc:176] …", with
// anything before it. Nothing where another part of the program wrote the line.
std::optional<AllocatorLine> allocator_line(std::string_view line);

// Numbers at the beginning of a text, taken off it. False, and nothing is taken, where there is none.
bool take_number(std::string_view& text, std::uint64_t& number);
bool take_pointer(std::string_view& text, std::uint64_t& address);  // "0x7f…", or "0" and "(nil)" for none
bool take(std::string_view& text, std::string_view prefix);

}  // namespace faultline
