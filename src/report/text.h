// Text for a terminal: made harmless, measured in columns, wrapped and shortened.
//
// Every string of a report may come from a hostile file, and a terminal obeys what it is shown. clean() is the one gate (base/safe_text.h): what passed it is
// valid UTF-8 without control characters, direction overrides or invisible characters. Everything else here expects cleaned text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace faultline {

// Whitespace becomes a space, control characters become a visible \x1b or \u202e, bad bytes U+FFFD. With unicode = false the result is
// ASCII: known punctuation is spelled out, the rest becomes '?'. Very long text is cut and says so.
std::string clean(std::string_view text, bool unicode);

int display_width(std::string_view text);                         // columns; wide characters take two
std::vector<std::string> wrap(std::string_view text, int width);  // at spaces; a word longer than a line is broken
// The first sentences, whole ones and at least one, as far as they fill so many lines.
std::string first_sentences(const std::string& text, int width, std::size_t lines);
std::string shorten_middle(std::string_view text, int width, bool unicode);
std::string format_duration(double time_ns);  // "1.5 s"
std::string pad_left(std::string_view text, int width);
std::string pad_right(std::string_view text, int width);

}  // namespace faultline
