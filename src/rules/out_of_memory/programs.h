// What helps against a full device in programs that people use, each with its own settings.
#pragma once

#include <array>
#include <string_view>

#include "rules/platform.h"

namespace faultline {

struct Program {
  std::string_view name;  // as StatedError::framework_name has it
  Platform platform = Platform::kCuda;
  std::array<std::string_view, 2> tries = {};
  bool is_python = true;  // most often run by a Python program
};
// Null: nothing is known of it.
const Program* program_of(std::string_view name);

}  // namespace faultline
