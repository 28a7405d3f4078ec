// Places in a program as a person would say them: "train.py:83 in train_step".
#pragma once

#include <string>
#include <string_view>

#include "rules/finding.h"

namespace faultline {

struct PathStyle {
  std::string cwd;   // paths below it are shown relative to it
  std::string home;  // shown as ~
  bool unicode = true;
};

// A path as a person would say it, in at most `width` columns where the file's name allows: site-packages/ and what stands before it goes,
// cwd and home are taken off, then folders in the middle give way.
std::string shorten_path(std::string_view path, const PathStyle& style, int width);

// "train.py:83 in train_step, op aten::mm, kernel gemm". Empty when nothing is known.
std::string describe_place(const Location& location, const PathStyle& style, int width);

// The same for a table, within `width`: where it is tight, the file and line are what stays.
std::string describe_line(const Location& location, const PathStyle& style, int width);

}  // namespace faultline
