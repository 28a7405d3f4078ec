// The Python traceback around a message: plain, of IPython, or drawn by rich; of one writer among several.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace faultline {

struct TracebackFrame {
  std::string file;
  std::uint32_t line = 0;
  std::string function;
};

// One frame if the line is one: 'File "x.py", line 3, in f', 'File ~/x.py:3, in f(a)', 'Cell In[5], line 3, in f(a)', '/x/y.py:3 in f'.
bool parse_frame(std::string_view line, TracebackFrame& frame);

// The traceback that ends in the message at `at`, or the one printed right below it. Outermost first, as Python prints them.
std::vector<TracebackFrame> traceback_at(std::string_view text, std::size_t at, const std::string& tag);

// "[[node conv2/Conv2D (defined at train.py:1488) ]]" behind a message of TensorFlow's: the line that made the operation, the function being its name. No file: there is none.
TracebackFrame defined_at(std::string_view text, std::size_t at);

}  // namespace faultline
