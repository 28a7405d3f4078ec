// What a page is of, in its title: which program, and what happened. "train.py: out of GPU memory".
#pragma once

#include <string>
#include <string_view>

#include "report/report.h"
#include "sources/input.h"

namespace faultline::view {

// The name of the program that the input is about, as its command or its call stacks tell it: "train.py",
// "python -m pack.train". Empty: not known.
std::string program_of(const Report& report, const Input& input);

// The words for an error of this rule; empty: a rule that is not known here.
std::string_view words_of(std::string_view rule);

// "out of GPU memory", "does not fit on Tesla T4", "nothing wrong was found".
std::string what_happened(const Report& report);

}  // namespace faultline::view
