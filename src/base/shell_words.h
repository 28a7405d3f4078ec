// Words of a text that go into a command which a person may copy into a shell.
#pragma once

#include <algorithm>
#include <string_view>

#include "base/characters.h"

namespace faultline {

// One word that no shell takes for anything but itself: "train.py", "runs/fit-2.py".
inline bool is_plain_word(std::string_view word) {
  return !word.empty() && word.front() != '-' && std::all_of(word.begin(), word.end(), [](char c) {
    return is_letter(c) || is_digit(c) || std::string_view("_-./+:,@%=").find(c) != std::string_view::npos ||
           static_cast<unsigned char>(c) >= 0x80;
  });
}

// A whole command whose words a shell hands on as they stand: blanks and quotes may be in it, nothing that runs or replaces something.
inline bool is_plain_command(std::string_view command) {
  return command.find_first_of("$`\\;|&<>(){}!#\n\r*?[]") == std::string_view::npos &&
         std::count(command.begin(), command.end(), '"') % 2 == 0 &&
         std::count(command.begin(), command.end(), '\'') % 2 == 0;
}

}  // namespace faultline
