// Errors of GPU programs that are not about memory and that Faultline does not judge: it says what they are.
#pragma once

#include <string_view>

namespace faultline {

struct OtherError {
  std::string_view words;       // as they stand in the text
  std::string_view what, next;  // of next, kProgram is the program's arguments
};
inline constexpr std::string_view kProgram = "…";

// The last of them that the text holds; null: none.
const OtherError* other_error(std::string_view text);

}  // namespace faultline
