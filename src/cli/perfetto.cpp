// --format perfetto: what was recorded, for Perfetto's viewer.
#include "view/perfetto.h"

#include <algorithm>

#include "cli/options.h"

namespace faultline::cli {

// Each is judged once: the report of what is written is in it. The status of an input with nothing to draw is that of bad input.
int write_perfetto(const Recordings& recordings) {
  std::vector<view::Viewed> viewed;
  int status = recordings.status;
  for (const Input& input : recordings.inputs) viewed.push_back(view::look_at(input));
  for (const view::Viewed& one : viewed) {
    if (recordings.judged) status = std::max(status, recordings.judged(one.report));
  }
  if (recordings.ready) recordings.ready();
  for (const view::Viewed& one : viewed) {
    for (const std::string& sentence : one.left_out) hint(sentence);
    if (one.scenes.empty() && viewed.size() > 1)
      hint((one.report.input_path == "-" ? "standard input" : one.report.input_path) +
           " holds no memory over time and is left out");
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
