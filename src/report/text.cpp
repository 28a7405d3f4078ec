#include "report/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "base/safe_text.h"

namespace faultline {
namespace {

constexpr std::size_t kLongestText = 800;  // bytes; nobody reads more, and a hostile file may hold megabytes

struct CodeRange {
  char32_t first, last;
};
bool within(char32_t code, const auto& ranges) {
  return std::any_of(ranges.begin(), ranges.end(),
                     [&](CodeRange range) { return code >= range.first && code <= range.last; });
}

int columns_of(char32_t code) {
  static constexpr std::array<CodeRange, 9> kWide = {{{0x1100, 0x115E},
                                                      {0x2E80, 0x303E},
                                                      {0x3041, 0xA4CF},
                                                      {0xAC00, 0xD7A3},
                                                      {0xF900, 0xFAFF},
                                                      {0xFE30, 0xFE6F},
                                                      {0xFF01, 0xFF60},
                                                      {0x1F300, 0x1FAFF},
                                                      {0x20000, 0x3FFFD}}};
  static constexpr std::array<CodeRange, 4> kCombining = {
      {{0x300, 0x36F}, {0x1AB0, 0x1AFF}, {0x20D0, 0x20FF}, {0xFE20, 0xFE2F}}};
  return within(code, kCombining) ? 0 : within(code, kWide) ? 2 : 1;
}

std::string_view in_ascii(char32_t code) {
  static constexpr std::array<std::pair<char32_t, std::string_view>, 14> kSpelled = {{
      {0xB7, "-"},
      {0x2022, "-"},
      {0xD7, "x"},
      {0x2013, "-"},
      {0x2014, "-"},
      {0x2212, "-"},
      {0x2018, "'"},
      {0x2019, "'"},
      {0x201C, "\""},
      {0x201D, "\""},
      {0x2026, "..."},
      {0x2192, "->"},
      {0x2264, "<="},
      {0x2265, ">="},
  }};
  const auto found =
      std::find_if(kSpelled.begin(), kSpelled.end(), [&](const auto& spelled) { return spelled.first == code; });
  return found == kSpelled.end() ? "?" : found->second;
}

// The first word of `text`. A number keeps its unit, and a shape such as [8192, 65536] stays together while it is short.
std::size_t word_end(std::string_view text) {
  constexpr std::size_t kLongestShape = 30;
  std::size_t end = std::min(text.find(' '), text.size());
  if (const std::size_t open = text.substr(0, end).rfind('['); open != std::string_view::npos) {
    const std::size_t close = text.find(']', open);
    if (close != std::string_view::npos && close - open < kLongestShape)
      end = std::min(text.find(' ', close), text.size());
  }
  if (end == 0 || text[end - 1] < '0' || text[end - 1] > '9') return end;
  for (const std::string_view unit : {" B", " KiB", " MiB", " GiB", " TiB", " %"}) {
    if (!text.substr(end).starts_with(unit)) continue;
    const std::size_t after = end + unit.size();
    const bool whole = after == text.size() || std::isalnum(static_cast<unsigned char>(text[after])) == 0;
    if (whole) return std::min(text.find(' ', after), text.size());
  }
  return end;
}

// GitHub takes a line that begins with "::" for a command, whatever blanks stand before it.
std::string as_line_begin(std::string_view word) {
  return word.starts_with("::") ? "\\x3a" + std::string(word.substr(1)) : std::string(word);
}

// As many whole characters of `text` from its start (or its end) as fit in `width` columns.
std::string_view first_columns(std::string_view text, int width) {
  std::size_t at = 0;
  while (at < text.size()) {
    const DecodedCharacter next = decode_utf8(text.substr(at));
    width -= columns_of(next.code);
    if (width < 0) break;
    at += next.length;
  }
  return text.substr(0, at);
}
std::string_view last_columns(std::string_view text, int width) {
  std::size_t skip = 0;
  for (int surplus = display_width(text) - width; surplus > 0 && skip < text.size();) {
    const DecodedCharacter next = decode_utf8(text.substr(skip));
    surplus -= columns_of(next.code);
    skip += next.length;
  }
  return text.substr(skip);
}

}  // namespace

std::string clean(std::string_view text, bool unicode) {
  std::string harmless = shown(text, kLongestText);
  if (unicode) return harmless;
  std::string out;
  for (std::string_view rest = harmless; !rest.empty();) {
    const auto [code, length] = decode_utf8(rest);
    out += code < 0x80 ? rest.substr(0, length) : in_ascii(code);
    rest.remove_prefix(length);
  }
  return out;
}

int display_width(std::string_view text) {
  int columns = 0;
  while (!text.empty()) {
    const auto [code, length] = decode_utf8(text);
    columns += columns_of(code);
    text.remove_prefix(length);
  }
  return columns;
}

std::vector<std::string> wrap(std::string_view text, int width) {
  width = std::max(width, 2);
  std::vector<std::string> lines;
  std::string line;
  const auto flush = [&] {
    if (!line.empty()) lines.push_back(std::move(line));
    line.clear();
  };
  while (!text.empty()) {
    const std::size_t end = word_end(text);
    std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (word.empty()) continue;
    if (!line.empty() && display_width(line) + 1 + display_width(word) > width) flush();
    std::string at_begin;
    if (line.empty()) word = at_begin = as_line_begin(word);
    while (display_width(word) > width) {
      const std::string_view head = first_columns(word, width);
      lines.emplace_back(head);
      word.remove_prefix(head.size());
      const std::string rest = as_line_begin(word);
      word = at_begin = rest;
    }
    if (!line.empty()) line += ' ';
    line += word;
  }
  flush();
  return lines;
}

std::string first_sentences(const std::string& text, int width, std::size_t lines) {
  std::string kept;
  for (std::size_t from = 0; from < text.size();) {
    std::size_t end = text.find(". ", from);
    // "e.g. one" goes on
    while (end != std::string::npos && end + 2 < text.size() && text[end + 2] >= 'a' && text[end + 2] <= 'z')
      end = text.find(". ", end + 1);
    const std::string next = end == std::string::npos ? text : text.substr(0, end + 1);
    if (!kept.empty() && wrap(next, width).size() > lines) break;
    kept = next;
    if (end == std::string::npos) break;
    from = end + 2;
  }
  return kept;
}

std::string shorten_middle(std::string_view text, int width, bool unicode) {
  if (display_width(text) <= width) return std::string(text);
  const std::string_view gap = unicode ? "…" : "...";
  const int room = std::max(width - display_width(gap), 2);
  const int head = room / 3;  // ends tell more than beginnings: file names, method names
  return std::string(first_columns(text, head)) + std::string(gap) + std::string(last_columns(text, room - head));
}

std::string format_duration(double time_ns) {
  const double seconds = time_ns / 1e9;
  if (seconds >= 7200) return fmt::format("{:.1f} h", seconds / 3600);
  if (seconds >= 120) return fmt::format("{:.1f} min", seconds / 60);
  if (seconds >= 1) return fmt::format("{:.1f} s", seconds);
  return seconds >= 1e-3 ? fmt::format("{:.1f} ms", seconds * 1e3) : fmt::format("{:.1f} us", seconds * 1e6);
}

std::string pad_left(std::string_view text, int width) {
  return std::string(static_cast<std::size_t>(std::max(width - display_width(text), 0)), ' ') + std::string(text);
}

std::string pad_right(std::string_view text, int width) {
  return std::string(text) + std::string(static_cast<std::size_t>(std::max(width - display_width(text), 0)), ' ');
}

}  // namespace faultline
