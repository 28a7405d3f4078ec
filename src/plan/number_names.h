// What numbers of a program are called, by what they mean: in its command, and in the summary of a dry run. python/faultline/plan/source/names.py has the same table, for numbers in
// the program's own files (tests/python/plan/test_number_names.py holds the two together).
#pragma once

#include <span>
#include <string_view>

namespace faultline {

enum class NumberKind : unsigned char {
  kBatch,      // of what a step, or a call, computes at once
  kServed,     // of inference alone
  kLength,     // of a sequence
  kGenerated,  // how many tokens a program generates, or reads before it does
};
// Of several in one program the first counts.
std::span<const std::string_view> number_names(NumberKind kind);

}  // namespace faultline
