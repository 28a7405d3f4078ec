// The pasted error as a source: any text may be a log with an error message in it.
#include <algorithm>
#include <array>

#include "sources/error_text/error_text.h"

namespace faultline {
namespace {

constexpr std::size_t kLookedAt = 4096;
constexpr std::size_t kMostLogBytes = std::size_t{4} << 30;
constexpr std::size_t kMostStreamedBytes = std::size_t{1} << 30;  // of what does not say its size beforehand

// Windows PowerShell writes logs so: UTF-16, with a mark at the beginning that tells the order of the bytes.
bool is_utf16(std::string_view head) { return head.starts_with("\xFF\xFE") || head.starts_with("\xFE\xFF"); }

void append_utf8(std::string& text, std::uint32_t code) {
  if (code < 0x80) return text.push_back(static_cast<char>(code));
  const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  static constexpr std::array<std::uint32_t, 4> kFirst = {0, 0xC0, 0xE0, 0xF0};
  text += static_cast<char>(kFirst[static_cast<std::size_t>(more)] | (code >> (6 * more)));
  for (int i = more - 1; i >= 0; --i) text += static_cast<char>(0x80 | ((code >> (6 * i)) & 0x3F));
}

std::string utf8_of(std::string_view bytes) {
  const bool little = bytes[0] == '\xFF';
  const auto unit = [&](std::size_t at) {
    return static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[at + (little ? 1 : 0)])) << 8 |
           static_cast<unsigned char>(bytes[at + (little ? 0 : 1)]);
  };
  std::string text;
  text.reserve(bytes.size() / 2);
  for (std::size_t at = 2; at + 1 < bytes.size(); at += 2) {
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

}  // namespace

// A NUL is in no log; a program or an archive may still hold a sentence that looks like an error.
bool recognises_error_text(std::span<const std::uint8_t> head) {
  if (is_utf16({reinterpret_cast<const char*>(head.data()), head.size()})) return true;
  const auto looked_at = head.first(std::min(head.size(), kLookedAt));
  return std::find(looked_at.begin(), looked_at.end(), std::uint8_t{0}) == looked_at.end();
}

Result<Trace> read_error_text(ByteStream& stream, const std::string& path) {
  Result<std::string> text = stream.read_all(stream.plain_size() ? kMostLogBytes : kMostStreamedBytes);
  if (!text) {
    Error error = text.error();
    if (error.next.empty()) error.next = "Cut it down to the part around the error, for example with tail.";
    return error;
  }
  return read_error_text(is_utf16(*text) ? std::string_view(*text = utf8_of(*text)) : std::string_view(*text), path);
}

}  // namespace faultline
