// What XLA prints of the program that it had compiled when memory runs out: how much it needs in all, and its largest buffers, each with its size, shape, operator and the line that made it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/byte_interval.h"

namespace faultline {

struct PeakBuffer {
  ByteInterval bytes;
  std::string shape;  // "f32[4096,128,3]"
  // "dot_general", the last part of the operator's name; "parameter" where it was given from outside
  std::string operation;
  std::string place;  // "models.py:689" as the text has it, empty where it has none
};

// The buffers of the last "Peak buffers" section in the text, largest first, at most `most`.
std::vector<PeakBuffer> peak_buffers(std::string_view text, std::size_t most);

}  // namespace faultline
