// Messages that are known by their words alone: the host's memory, a device that cannot be used, operands that do not go together, a serving engine without room for its cache, the kernel's log.
//
// One table: the words to look for and the kind that they mean. What each kind means to the user is told by rules/known_messages.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "sources/error_text/message.h"

namespace faultline {

struct KnownWords {
  std::string_view text;  // lower case, single blanks, shorter than 64
  std::string_view kind;
  bool anywhere = false;  // nobody writes these words in prose; else they must stand where a program puts an error
};
std::span<const KnownWords> known_words();

std::optional<ErrorMessage> read_known_message(const ErrorPassage& passage);

}  // namespace faultline
