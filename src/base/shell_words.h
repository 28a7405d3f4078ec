// Words of a text that go into a command which a person may copy into a shell.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include "base/characters.h"

namespace faultline {

// Characters of which no shell does anything.
inline bool is_plain_text(std::string_view word) {
  return std::all_of(word.begin(), word.end(), [](char c) {
    return is_letter(c) || is_digit(c) || std::string_view("_-./+:,@%=").find(c) != std::string_view::npos ||
           static_cast<unsigned char>(c) >= 0x80;
  });
}

// One word that no shell takes for anything but itself, and no program for an option: "train.py", "runs/fit-2.py".
inline bool is_plain_word(std::string_view word) {
  return !word.empty() && word.front() != '-' && word.front() != '=' && is_plain_text(word);
}

// A whole command whose words a shell hands on as they stand: blanks and quotes that are closed may be in it, nothing that runs or replaces something.
inline bool is_plain_command(std::string_view command) {
  char quote = 0;  // that is open
  for (const char c : command) {
    if (std::string_view("$`\\;|&<>(){}!#*?[]").find(c) != std::string_view::npos) return false;
    if ((static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f || (c == '~' && quote == 0)) return false;
    if (c == quote)
      quote = 0;
    else if (quote == 0 && (c == '"' || c == '\''))
      quote = c;
  }
  return quote == 0;
}

// The word as it is typed, so that a shell hands on just this.
inline std::string shell_word(std::string_view word) {
  if (!word.empty() && word.front() != '=' && is_plain_text(word)) return std::string(word);
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

}  // namespace faultline
