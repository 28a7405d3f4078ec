#include "base/safe_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>

namespace faultline {
namespace {

struct CodeRange {
  char32_t first, last;
};

std::string json_escape(char32_t code) {
  if (code < 0x10000) return fmt::format("\\u{:04x}", static_cast<std::uint32_t>(code));
  const auto rest = static_cast<std::uint32_t>(code - 0x10000);
  return fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + (rest >> 10), 0xDC00 + (rest & 0x3FF));
}

}  // namespace

DecodedCharacter decode_utf8(std::string_view text) {
  const auto byte = [&](std::size_t at) -> char32_t {
    return at < text.size() ? static_cast<unsigned char>(text[at]) : 0;
  };
  const char32_t first = byte(0);
  if (first < 0x80) return {first, 1};
  const std::size_t length = first >= 0xF0 && first < 0xF5   ? 4
                             : first >= 0xE0 && first < 0xF0 ? 3
                             : first >= 0xC2 && first < 0xE0 ? 2
                                                             : 0;
  if (length == 0) return {kReplacementCharacter, 1};
  char32_t code = first & (0x7Fu >> length);
  for (std::size_t at = 1; at < length; ++at) {
    if ((byte(at) & 0xC0) != 0x80) return {kReplacementCharacter, 1};
    code = code << 6 | (byte(at) & 0x3F);
  }
  constexpr std::array<char32_t, 5> kSmallest = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  if (code < kSmallest[length] || code > 0x10FFFF || surrogate) return {kReplacementCharacter, 1};
  return {code, length};
}

bool is_harmful(char32_t code) {
  static constexpr std::array<CodeRange, 19> kHarmful = {{{0, 0x1F},
                                                          {0x7F, 0x9F},
                                                          {0xAD, 0xAD},
                                                          {0x34F, 0x34F},
                                                          {0x61C, 0x61C},
                                                          {0x115F, 0x1160},
                                                          {0x180B, 0x180F},
                                                          {0x200B, 0x200F},
                                                          {0x2028, 0x202E},
                                                          {0x2060, 0x206F},
                                                          {0x3164, 0x3164},
                                                          {0xE000, 0xF8FF},
                                                          {0xFE00, 0xFE0F},
                                                          {0xFEFF, 0xFEFF},
                                                          {0xFFA0, 0xFFA0},
                                                          {0xFFF0, 0xFFFB},
                                                          {0xFFFE, 0xFFFF},
                                                          {0xE0000, 0xE0FFF},
                                                          {0xF0000, 0x10FFFF}}};
  return std::any_of(kHarmful.begin(), kHarmful.end(),
                     [&](CodeRange range) { return code >= range.first && code <= range.last; });
}

std::string shown(std::string_view text, std::size_t limit) {
  std::string out;
  const bool cut = text.size() > limit;
  if (cut) text = text.substr(0, limit);
  while (!text.empty()) {
    const auto [code, length] = decode_utf8(text);
    if (code == ' ' || (code >= '\t' && code <= '\r')) {
      out += ' ';
    } else if (is_harmful(code)) {
      out += code <= 0xFF ? fmt::format("\\x{:02x}", static_cast<std::uint32_t>(code))
                          : fmt::format("\\u{:04x}", static_cast<std::uint32_t>(code));
    } else if (code == kReplacementCharacter) {
      out += "\uFFFD";
    } else {
      out += text.substr(0, length);
    }
    // "##[error]" and "##vso[…]" are commands of servers that run a program's output through, wherever in a line they stand
    if (out.ends_with("##") && (text.substr(length).starts_with("[") || text.substr(length).starts_with("vso[")))
      out.replace(out.size() - 1, 1, "\\x23");
    text.remove_prefix(length);
  }
  return cut ? out + " [cut]" : out;
}

std::string escaped_markup(std::string_view text) {
  std::string out;
  for (const char letter : text) {
    switch (letter) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      default: out += letter;
    }
  }
  return out;
}

std::string escaped_json(std::string document) {
  // The structure of a document and the escapes of its writer are ASCII: what stands above it stands inside a string.
  const auto is_plain = [](char c) { return static_cast<unsigned char>(c) < 0x7F; };
  if (std::all_of(document.begin(), document.end(), is_plain)) return document;
  std::string out;
  out.reserve(document.size() + document.size() / 8);
  for (std::string_view rest = document; !rest.empty();) {
    const auto [code, length] = decode_utf8(rest);
    if (code >= 0x7F && is_harmful(code)) {
      out += json_escape(code);
    } else if (code == kReplacementCharacter) {
      out += "\uFFFD";
    } else {
      out += rest.substr(0, length);
    }
    rest.remove_prefix(length);
  }
  return out;
}

}  // namespace faultline
