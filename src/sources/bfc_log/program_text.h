// What stands in the log beside the allocator's lines: the program's own output, and the error that ended it.
#pragma once

#include <string>
#include <string_view>

#include "trace/trace.h"

namespace faultline {

class ProgramText {
 public:
  void add(std::string_view line);
  // The message in it, as the reader of messages sees it: its statements become the trace's; the Python line of a request that was refused becomes the failed
  // request's.
  void tell(Trace& trace, const std::string& path) const;

 private:
  std::string text_;
};

}  // namespace faultline
