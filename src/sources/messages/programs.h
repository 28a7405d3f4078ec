// Programs that people use, each with its own words for what failed and what helps there: a row for each.
#pragma once

#include <array>
#include <initializer_list>
#include <span>
#include <string_view>

#include "sources/messages/kinds.h"

namespace faultline {

struct Program {
  std::string_view name;
  Platform platform = Platform::kCuda;
  bool is_python = true;                       // most often run by a Python program
  std::array<std::string_view, 2> tries = {};  // against a full device
  std::initializer_list<MessageWords> words = {};
};
// Null: nothing is known of it.
const Program* program_of(std::string_view name);

}  // namespace faultline
