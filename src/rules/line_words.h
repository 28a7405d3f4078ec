// How a line is said behind its file: "train.py:12", but "cell [12], line 3" of a notebook's cell.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace faultline {

inline std::string line_behind(std::string_view file, std::uint32_t line) {
  const bool is_cell = file.starts_with("cell [") && file.ends_with(']');
  return (is_cell ? ", line " : ":") + std::to_string(line);
}

}  // namespace faultline
