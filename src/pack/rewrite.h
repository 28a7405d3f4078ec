// What a file of an input becomes in a pack: the same file with everything in its strings scrubbed.
//
// JSON is rewritten string by string and stays as it was otherwise; text as a whole. What is binary (a snapshot's pickle, a core dump, a map of a pool, a
// trace) is read into a trace as explain reads it, the trace's strings are rewritten, and it is written as a Faultline trace: nothing of the old bytes is left.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "pack/scrubber.h"
#include "trace/trace.h"

namespace faultline::pack {

struct Manner {
  bool keep_arguments = false;  // of command lines, apart from secrets and paths
};

// Nothing but JSON's own tokens, though it may break off or hold several documents; a log may begin like one ("[rank0]: ...") and is none.
bool is_json_text(std::string_view text);
std::string rewritten_json(std::string_view text, Scrubber& scrubber, const Manner& manner);
// A word of a command line, and the one before it; none: it is the program.
std::string rewritten_argument(std::string_view word, std::optional<std::string_view> before, Scrubber& scrubber,
                               const Manner& manner);
void rewrite(Trace& trace, Scrubber& scrubber);

struct Rewritten {
  std::string content;
  bool is_trace = false;  // and was none before
};
// The Error: why it is left out.
Result<Rewritten> rewritten_file(const std::string& path, Scrubber& scrubber, const Manner& manner);

}  // namespace faultline::pack
