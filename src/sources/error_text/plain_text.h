// A text in the one form that its readers know: UTF-8, lines that end in "\n" and in nothing else.
//
// Windows writes "\r\n", and from PowerShell UTF-16, with or without a mark at its beginning; progress bars go back to the beginning of their line with "\r" alone;
// a log that was cut while its writer went on begins with NULs.
#pragma once

#include <string>
#include <string_view>

namespace faultline {

// Stands before the end of a line that was written over, which no viewer counts as one.
inline constexpr char kOverwritten = '\x1d';

// Begins the line that stands for those that were left out of a long text; their number follows.
inline constexpr char kLeftOut = '\x1e';

// Whether its letters have two bytes each.
bool is_utf16(std::string_view text);
// Whether the beginning of a file is that of a text, and not of a program, an archive or a picture.
bool is_text(std::string_view head);

// Whether anything of it has another form.
bool needs_plain_form(std::string_view text);
std::string plain_text(std::string_view text);

}  // namespace faultline
