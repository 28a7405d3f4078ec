// Text of others made harmless to show. A terminal obeys what it is shown, and people believe what they read: escape sequences act, direction marks turn a
// line around, invisible characters make two names look alike. Whatever comes from an input, a file's name or another program passes through here before
// it reaches a terminal, a message or a JSON document.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace faultline {

struct DecodedCharacter {
  char32_t code;
  std::size_t length;  // bytes taken
};
inline constexpr char32_t kReplacementCharacter = 0xFFFD;

// The first character of `text`, which is not empty. A bad byte is one replacement character.
DecodedCharacter decode_utf8(std::string_view text);

// Would act on a terminal or hide: C0, DEL, C1, soft hyphen, zero-width and direction marks, separators, variation selectors, tags, private use, and U+FFFE and U+FFFF, which no XML may hold.
bool is_harmful(char32_t code);

// Valid UTF-8 on one line: whitespace is a space, what is harmful a visible \x1b or \u202e, bad bytes U+FFFD. Text longer than `limit` bytes is cut and says so.
std::string shown(std::string_view text, std::size_t limit = 4096);

// For the text of an element and for an attribute, of HTML and of XML: it ends neither.
std::string escaped_markup(std::string_view text);

// A JSON document with everything harmful in its strings spelled as \uXXXX: the same document.
std::string escaped_json(std::string document);

}  // namespace faultline
