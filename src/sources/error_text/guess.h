// A line of an unknown program that looks as if memory on a GPU had run out, or as if a kernel had failed: looked for only where no known message stands in the text.
#pragma once

#include <optional>
#include <string_view>

#include "sources/error_text/survey.h"

namespace faultline {

// The last such line. Its message is weak, has the word "guessed", and of numbers a size that the line itself has.
std::optional<Chosen> guess_of(std::string_view text);

}  // namespace faultline
