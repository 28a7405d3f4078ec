#include "sources/bfc_log/log_line.h"

#include <algorithm>
#include <charconv>
#include <cstring>

namespace faultline {
namespace {

constexpr std::string_view kFile = "bfc_allocator.cc:";
constexpr std::size_t kLongestPrefix = 320;
constexpr std::int64_t kSecond = 1'000'000'000;

std::string_view last_word(std::string_view& text) {
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  const std::size_t space = text.rfind(' ');
  const std::string_view word = space == std::string_view::npos ? text : text.substr(space + 1);
  text.remove_suffix(word.size());
  return word;
}

// "00:00:1794821189.411602", "10:00:00.123456:": hours and minutes are 0 where seconds are those of an epoch.
std::int64_t time_of(std::string_view word) {
  std::uint64_t hours = 0, minutes = 0, seconds = 0, fraction = 0;
  if (!take_number(word, hours) || !take(word, ":") || !take_number(word, minutes) || !take(word, ":") ||
      !take_number(word, seconds) || hours > 23 || minutes > 59 || seconds > 0xffffffff)
    return 0;
  std::int64_t nanoseconds = 0;
  if (take(word, ".")) {
    const std::size_t before = word.size();
    if (take_number(word, fraction) && before - word.size() <= 9) {
      nanoseconds = static_cast<std::int64_t>(fraction);
      for (std::size_t digits = before - word.size(); digits < 9; ++digits) nanoseconds *= 10;
    }
  }
  return static_cast<std::int64_t>(hours * 3600 + minutes * 60 + seconds) * kSecond + nanoseconds;
}

}  // namespace

bool take(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

bool take_number(std::string_view& text, std::uint64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{}) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

bool take_pointer(std::string_view& text, std::uint64_t& address) {
  if (take(text, "(nil)")) {
    address = 0;
    return true;
  }
  const bool is_hex = take(text, "0x");
  if (!is_hex) return take_number(text, address) && address == 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), address, 16);
  if (error != std::errc{}) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

std::optional<AllocatorLine> allocator_line(std::string_view line) {
  const std::string_view front = line.substr(0, kLongestPrefix);
  const void* found = memmem(front.data(), front.size(), kFile.data(), kFile.size());
  if (found == nullptr) return std::nullopt;
  const auto at = static_cast<std::size_t>(static_cast<const char*>(found) - line.data());
  const std::size_t close = line.find(']', at);
  if (close == std::string_view::npos || close - at > kFile.size() + 10) return std::nullopt;
  AllocatorLine parsed;
  parsed.message = line.substr(std::min(close + 2, line.size()));
  std::string_view before = line.substr(0, at);
  if (!before.empty() && before.back() != ' ') last_word(before);  // the file's folders
  if (!before.empty()) {
    std::string_view word = last_word(before);
    std::string_view digits = word;
    if (std::uint64_t thread = 0; take_number(digits, thread) && digits.empty()) {
      parsed.thread = thread;
      word = last_word(before);
    }
    if (word.size() == 1) word = last_word(before);  // the severity, where it stands alone
    parsed.time_ns = time_of(word);
  }
  return parsed;
}

}  // namespace faultline
