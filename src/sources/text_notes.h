// What a text tells around its message: how the message stands in it, and what else is in it.
#pragma once

#include <string>
#include <vector>

#include "trace/trace.h"

namespace faultline {

struct TextNotes {
  // an exception of another kind that only quotes the message, "ValueError: upstream said: …, serve.py:7"; empty: the message is its exception's own
  std::string quoted_by;
  std::vector<std::string> also;  // messages of other errors in the same text
  bool sets_expandable = false;   // the text shows expandable_segments:True being set
  bool has_traceback = false;     // it is more than the message alone
};
// Nothing, where the trace is not of a text.
TextNotes read_text_notes(const Trace& trace);

}  // namespace faultline
