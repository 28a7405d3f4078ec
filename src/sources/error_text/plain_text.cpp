#include "sources/error_text/plain_text.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace faultline {
namespace {

constexpr std::size_t kLookedAt = 4096;
constexpr std::string_view kUtf8Mark = "\xEF\xBB\xBF";

enum class Order : std::uint8_t { kNone, kLittle, kBig };

// UTF-16 by its mark, or by the half of its bytes that is 0 in a text of mostly Latin letters.
Order utf16_order(std::string_view head) {
  if (head.starts_with("\xFF\xFE")) return Order::kLittle;
  if (head.starts_with("\xFE\xFF")) return Order::kBig;
  std::size_t first = 0, second = 0;
  const std::size_t units = std::min(head.size(), kLookedAt) / 2;
  for (std::size_t unit = 0; unit < units; ++unit) {
    const char a = head[2 * unit], b = head[2 * unit + 1];
    if ((a == 0) == (b == 0)) continue;
    ++(a == 0 ? first : second);
  }
  constexpr std::size_t kFewest = 8;  // letters, to tell by
  if (units < kFewest) return Order::kNone;
  if (second * 10 >= units * 8 && first * 20 <= units) return Order::kLittle;
  return first * 10 >= units * 8 && second * 20 <= units ? Order::kBig : Order::kNone;
}

void append_utf8(std::string& text, std::uint32_t code) {
  if (code < 0x80) return text.push_back(static_cast<char>(code));
  const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  static constexpr std::array<std::uint32_t, 4> kFirst = {0, 0xC0, 0xE0, 0xF0};
  text += static_cast<char>(kFirst[static_cast<std::size_t>(more)] | (code >> (6 * more)));
  for (int i = more - 1; i >= 0; --i) text += static_cast<char>(0x80 | ((code >> (6 * i)) & 0x3F));
}

std::string utf8_of(std::string_view bytes, Order order) {
  const bool little = order == Order::kLittle;
  const auto unit = [&](std::size_t at) {
    return static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[at + (little ? 1 : 0)])) << 8 |
           static_cast<unsigned char>(bytes[at + (little ? 0 : 1)]);
  };
  std::string text;
  text.reserve(bytes.size() / 2);
  for (std::size_t at = unit(0) == 0xFEFF ? 2 : 0; at + 1 < bytes.size(); at += 2) {
    std::uint32_t code = unit(at);
    const bool pairs =
        code >= 0xD800 && code < 0xDC00 && at + 3 < bytes.size() && unit(at + 2) >= 0xDC00 && unit(at + 2) < 0xE000;
    if (pairs) {
      code = 0x10000 + ((code - 0xD800) << 10) + (unit(at + 2) - 0xDC00);
      at += 2;
    }
    append_utf8(text, code >= 0xD800 && code < 0xE000 ? 0xFFFD : code);
  }
  return text;
}

// What no text holds: neither a blank, nor of a terminal (bell, backspace, escape).
bool is_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte < ' ' && byte != 0 && !(byte >= '\a' && byte <= '\r') && byte != 0x1b;
}

}  // namespace

bool is_utf16(std::string_view text) { return utf16_order(text) != Order::kNone; }

bool is_text(std::string_view head) {
  if (is_utf16(head)) return true;
  for (const std::string_view magic : {"\x7f"
                                       "ELF",
                                       "PK\x03\x04", "\x89PNG", "%PDF-", "GIF8"}) {
    if (head.starts_with(magic)) return false;
  }
  // NULs where a log was cut, and then text.
  if (const std::size_t begin = head.find_first_not_of('\0'); begin != std::string_view::npos)
    head.remove_prefix(begin);
  head = head.substr(0, kLookedAt);
  const auto size = static_cast<std::ptrdiff_t>(head.size()), nuls = std::count(head.begin(), head.end(), '\0'),
             controls = std::count_if(head.begin(), head.end(), is_control);
  // A program or an archive holds both, and may still hold a sentence that looks like an error.
  constexpr std::ptrdiff_t kFewest = 16;  // characters, among NULs
  return nuls == 0 ? controls * 10 <= size : controls == 0 && size - nuls >= kFewest;
}

bool needs_plain_form(std::string_view text) {
  constexpr std::string_view kOthers("\r\0", 2);
  return text.starts_with(kUtf8Mark) || utf16_order(text) != Order::kNone ||
         text.find_first_of(kOthers) != std::string_view::npos;
}

std::string plain_text(std::string_view text) {
  std::string wide;
  if (const Order order = utf16_order(text); order != Order::kNone) text = wide = utf8_of(text, order);
  if (text.starts_with(kUtf8Mark)) text.remove_prefix(kUtf8Mark.size());
  const bool only_returns = text.find('\n') == std::string_view::npos;
  std::string plain;
  const auto returns = only_returns ? 0 : std::count(text.begin(), text.end(), '\r');  // each may become two
  plain.reserve(text.size() + static_cast<std::size_t>(returns));
  for (std::size_t at = 0; at < text.size();) {
    constexpr std::string_view kOthers("\r\0", 2);
    const std::size_t stop = std::min(text.find_first_of(kOthers, at), text.size());
    plain += text.substr(at, stop - at);
    at = stop + 1;
    if (stop == text.size() || text[stop] == '\0') continue;
    // "\r\r\n" is of a program that translates twice
    if (const std::size_t next = text.find_first_not_of('\r', stop); next < text.size() && text[next] == '\n') {
      at = next;
      continue;
    }
    if (!only_returns) plain += kOverwritten;
    plain += '\n';
  }
  return plain;
}

}  // namespace faultline
