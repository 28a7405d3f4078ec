#include "pack/readable_text.h"

#include <algorithm>
#include <array>
#include <utility>

#include "pack/secrets.h"

namespace faultline::pack {
namespace {

int digit_of(char c) {
  if (is_digit(c)) return c - '0';
  const char small = is_upper(c) ? static_cast<char>(c - 'A' + 'a') : c;
  return small >= 'a' && small <= 'f' ? small - 'a' + 10 : -1;
}

// What a terminal obeys and does not show, behind its first character: [32m, ]8;; (what follows is shown), a letter.
std::size_t sequence_length(std::string_view rest) {
  if (rest.empty()) return 0;
  std::size_t at = 1;
  if (rest[0] == '[') {
    while (at < rest.size() && at < 64 && rest[at] >= 0x20 && rest[at] <= 0x3f) ++at;
    return at < rest.size() && rest[at] >= 0x40 && rest[at] <= 0x7e ? at + 1 : at;
  }
  if (rest[0] == ']') {
    while (at < rest.size() && at < 64 && (is_digit(rest[at]) || rest[at] == ';')) ++at;
    return at;
  }
  if (rest[0] == '(' || rest[0] == ')') return std::min<std::size_t>(2, rest.size());
  return static_cast<unsigned char>(rest[0]) > ' ' ? 1 : 0;
}

// As a program's text shows the character: \x1b, \033, \u001b, \e.
std::size_t written_escape(std::string_view rest) {
  for (const std::string_view written : {"\\x1b[", "\\x1B[", "\\033[", "\\u001b[", "\\u001B[", "\\e["}) {
    if (rest.starts_with(written)) return written.size() - 1;
  }
  return 0;
}

char written_character(char c) {
  static constexpr std::array<std::pair<char, char>, 7> kWritten = {
      {{'n', '\n'}, {'r', '\r'}, {'t', '\t'}, {'"', kEscapedDouble}, {'\'', kEscapedSingle}, {'\\', '\\'}, {'/', '/'}}};
  for (const auto& [written, is] : kWritten) {
    if (c == written) return is;
  }
  return '\0';
}

// Of that number of hexadecimal digits, where it is a character that a secret or what introduces one may have.
char character_of(std::string_view digits, std::size_t count) {
  if (digits.size() < count) return '\0';
  int value = 0;
  for (const char digit : digits.substr(0, count)) {
    const int more = digit_of(digit);
    if (more < 0 || value > 0x7f) return '\0';
    value = value * 16 + more;
  }
  const bool is_shown = (value >= ' ' && value <= '~') || value == '\n' || value == '\r' || value == '\t';
  return is_shown ? static_cast<char>(value) : '\0';
}
char as_escaped(char c) { return c == '"' ? kEscapedDouble : c == '\'' ? kEscapedSingle : c; }

struct Written {
  std::size_t length = 0;
  char is = '\0';
};

bool is_octal(char c) { return c >= '0' && c <= '7'; }

// Characters that nobody sees: blanks without width, the mark of the byte order, a soft hyphen.
std::size_t unseen_length(std::string_view rest) {
  for (const std::string_view one :
       {"\xe2\x80\x8b", "\xe2\x80\x8c", "\xe2\x80\x8d", "\xe2\x81\xa0", "\xef\xbb\xbf", "\xc2\xad"}) {
    if (rest.starts_with(one)) return one.size();
  }
  return 0;
}

// %68, %2568, \x68, \150, \u0068, \\u0068, \U00000068, \u{68}, &#104;, &#x68;, &quot;
Written written_in_digits(std::string_view rest) {
  if (rest[0] == '%') {  // %2F, %252F: a percent sign may be written so itself
    std::size_t length = 1;
    while (length < 9 && rest.substr(length, 2) == "25") length += 2;
    const char is = character_of(rest.substr(length), 2);
    return is == '\0' && length > 1 ? Written{3, '%'} : Written{length + 2, is};
  }
  if (rest[0] == '\\') {
    if (rest.starts_with("\\U")) return {10, as_escaped(character_of(rest.substr(2), 8))};
    if (rest.starts_with("\\u{")) {
      const std::size_t end = rest.substr(0, 12).find('}');
      return end == npos || end < 4 ? Written{} : Written{end + 1, as_escaped(character_of(rest.substr(3), end - 3))};
    }
    if (rest.size() > 3 && (rest[1] == '0' || rest[1] == '1') && is_octal(rest[2]) && is_octal(rest[3])) {
      const int value = (rest[1] - '0') * 64 + (rest[2] - '0') * 8 + (rest[3] - '0');
      return value >= ' ' && value <= '~' ? Written{4, as_escaped(static_cast<char>(value))} : Written{};
    }
    for (const std::string_view begin : {"\\u", "\\\\u"}) {
      if (rest.starts_with(begin)) return {begin.size() + 4, as_escaped(character_of(rest.substr(begin.size()), 4))};
    }
    if (rest.starts_with("\\x")) return {4, as_escaped(character_of(rest.substr(2), 2))};
    return {};
  }
  static constexpr std::array<std::pair<std::string_view, char>, 5> kEntities = {
      {{"&quot;", kEscapedDouble}, {"&apos;", kEscapedSingle}, {"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}}};
  for (const auto& [entity, is] : kEntities) {
    if (rest.starts_with(entity)) return {entity.size(), is};
  }
  const std::size_t end = rest.substr(0, 8).find(';');
  if (!rest.starts_with("&#") || end == npos || end < 3) return {};
  const std::string_view digits = rest.substr(2, end - 2);
  if (digits[0] == 'x') return {end + 1, as_escaped(character_of(digits.substr(1), digits.size() - 1))};
  int value = 0;
  for (const char digit : digits) {
    if (!is_digit(digit) || value > 0x7f) return {};
    value = value * 10 + (digit - '0');
  }
  return value >= ' ' && value <= '~' ? Written{end + 1, as_escaped(static_cast<char>(value))} : Written{};
}

bool ends_windows_path(char c) {
  return static_cast<unsigned char>(c) < ' ' || std::string_view("\"'<>|,;*?").find(c) != npos;
}

}  // namespace

ReadableText::ReadableText(std::string_view raw) : raw_(raw) {
  if (raw.find_first_of("\x1b\\%&\xe2\xef\xc2") == npos) return;
  is_changed_ = true;
  plain_.reserve(raw.size());
  const auto edit = [&](std::size_t at, std::size_t length, char is, bool stays) {
    edits_.push_back({static_cast<std::uint32_t>(plain_.size()), static_cast<std::uint32_t>(at),
                      static_cast<std::uint32_t>(length), is != '\0', stays});
    if (is != '\0') plain_ += is;
    return length;
  };
  bool is_windows = false;
  for (std::size_t at = 0; at < raw.size();) {
    const char c = raw[at];
    const std::string_view rest = raw.substr(at, 80);
    if (is_windows && ends_windows_path(c)) is_windows = false;
    if (!is_windows && c == ':' && at > 0 && is_letter(raw[at - 1]) && (at == 1 || !is_alphanumeric(raw[at - 2])))
      is_windows = raw.substr(at + 1, 1) == "\\" && raw.substr(at + 2, 1) != "\"" && raw.substr(at + 2, 1) != "'";
    if (rest.starts_with(kSeam)) {
      at += edit(at, kSeam.size(), '\n', true);
    } else if (const std::size_t unseen = c == '\xe2' || c == '\xef' || c == '\xc2' ? unseen_length(rest) : 0;
               unseen != 0) {
      at += edit(at, unseen, '\0', false);
    } else if (c == '\x1b') {
      at += edit(at, 1 + sequence_length(rest.substr(1)), '\0', true);
    } else if (const std::size_t escape = c == '\\' ? written_escape(rest) : 0; escape != 0) {
      at += edit(at, escape + sequence_length(rest.substr(escape)), '\0', true);
    } else if (c == '\\' && rest.size() > 1 && is_windows && rest[1] == '\\') {
      at += edit(at, 2, '\\', false);
    } else if (const Written written =
                   c == '%' || c == '&' || (c == '\\' && !is_windows) ? written_in_digits(rest) : Written{};
               written.is != '\0') {
      at += edit(at, written.length, written.is, false);
    } else if (const char is = c == '\\' && rest.size() > 1 && !is_windows ? written_character(rest[1]) : '\0';
               is != '\0') {
      at += edit(at, 2, is, false);
    } else {
      plain_ += c;
      ++at;
    }
  }
}

bool ReadableText::is_seam(std::size_t at) const { return next_seam(at) == at; }

// Asked for from left to right, so a place that was found serves the next question too.
std::size_t ReadableText::next_seam(std::size_t at) const {
  if (seen_ > 0 && edits_[seen_ - 1].at >= at)
    seen_ = static_cast<std::size_t>(std::lower_bound(edits_.begin(), edits_.end(), at,
                                                      [](const Edit& edit, std::size_t to) { return edit.at < to; }) -
                                     edits_.begin());
  while (seen_ < edits_.size() && edits_[seen_].at < at) ++seen_;
  for (std::size_t i = seen_; i < edits_.size() && i < seen_ + 64; ++i) {
    if (edits_[i].stays) return edits_[i].at;
  }
  return npos;
}

void ReadableText::go(std::size_t to, std::string& out, bool copies) {
  while (at_ <= to) {
    const bool has =
        next_ < edits_.size() && edits_[next_].at <= to && (edits_[next_].at < to || !edits_[next_].is_one);
    const std::size_t end = has ? edits_[next_].at : to;
    if (copies) out.append(raw_.substr(raw_at_, end - at_));
    raw_at_ += end - at_;
    at_ = end;
    if (!has) return;
    const Edit& edit = edits_[next_++];
    if (copies || edit.stays) out.append(raw_.substr(edit.raw, edit.length));
    raw_at_ = edit.raw + edit.length;
    at_ += edit.is_one ? 1 : 0;
  }
}

void ReadableText::copy(std::size_t to, std::string& out) { go(to, out, true); }
void ReadableText::skip(std::size_t to, std::string& out) { go(to, out, false); }

}  // namespace faultline::pack
