// Lines of a log as people paste them: colours, timestamps, "[rank3]:", "(Worker pid=123)", Windows line ends, wrapped text, several
// processes writing at once. Everything here is bounded: a line of any length costs a look at its first few hundred bytes.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>

namespace faultline {

// What stands before the words of a line. `tag` names the writer ("[rank3]", "(pid=123)"), without times and levels, and is empty when
// nothing names one; `length` is where the words begin.
struct LinePrefix {
  std::string tag;
  std::size_t length = 0;
};
LinePrefix split_prefix(std::string_view line);

// Both name a writer, and not the same.
inline bool is_other_writer(const std::string& tag, const std::string& other) {
  return !tag.empty() && !other.empty() && tag != other;
}

template <std::size_t kCount>
bool has_any(std::string_view line, const std::array<std::string_view, kCount>& parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](std::string_view part) { return line.find(part) != std::string_view::npos; });
}

// Length of the terminal escape sequence at the start of `text`, 0 if there is none.
// Whether TensorFlow's or XLA's own logger wrote the line ("E1116 09:54:05.2 8595 bfc_allocator.cc:598] …"), or it is one of the statistics that follow such a line: it shows a failure, not a
// program at work.
bool is_runtime_line(std::string_view line, const LinePrefix& prefix);

std::size_t escape_length(std::string_view text);

// In ASCII.
std::string lower_case(std::string_view line);
// Without escape sequences, control characters and trailing blanks; at most `limit` bytes are read.
std::string clean_line(std::string_view line, std::size_t limit);

// Where the line that holds `at` begins, looking back at most `limit` bytes.
std::size_t line_begin(std::string_view text, std::size_t at, std::size_t limit);
// Where it ends (the newline's position, or the text's end), looking ahead at most `limit` bytes.
std::size_t line_end(std::string_view text, std::size_t at, std::size_t limit);

// Where `words` stand for the last time, as rfind finds it, at the speed of memrchr.
std::size_t find_last(std::string_view text, std::string_view words);

// Of a long text its beginning and what stands around `at`, for what is looked for by many words; empty where the text itself is short enough.
struct Neighbourhood {
  std::string text;  // empty: all of it
  std::size_t at;    // the place, in it
};
Neighbourhood neighbourhood(std::string_view text, std::size_t at);

// The words from `at` on as one line: blanks and line ends are one space each, prefixes of following lines are gone, and so are lines that
// another writer put in between. At most `limit` bytes of output from at most sixteen times as many bytes of input.
struct Passage {
  std::string words;
  std::size_t first_line_length = 0;  // words up to here stood on the line of `at`
};
Passage passage_from(std::string_view text, std::size_t at, const std::string& tag, std::size_t limit);

}  // namespace faultline
