// --format perfetto, of the verbs that have a recording.
#include "view/perfetto.h"

#include "cli/options.h"
#include "view/page.h"

namespace faultline::cli {

int write_perfetto(std::span<const Input> inputs, int status) {
  std::vector<view::Viewed> viewed;
  for (const Input& input : inputs) {
    viewed.push_back(view::look_at(input));
    for (const std::string& sentence : viewed.back().left_out) hint(sentence);
    if (viewed.back().scenes.empty() && inputs.size() > 1)
      hint((input.path == "-" ? "standard input" : input.path) + " holds no memory over time and is left out");
  }
  const std::string trace = view::make_perfetto(viewed);
  if (trace.empty())
    return fail(
        "there is nothing to draw: --format perfetto takes a recording of memory over time (a memory snapshot, a "
        "trace, "
        "an allocator's log, the folder of a run or a plan), not an error message or a report");
  return write_out(trace, status);
}

}  // namespace faultline::cli
