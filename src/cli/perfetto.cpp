#include "cli/perfetto.h"

#include "cli/options.h"
#include "view/perfetto.h"

namespace faultline::cli {

std::vector<view::Viewed> look_at_each(std::span<const Input> inputs) {
  std::vector<view::Viewed> viewed;
  for (const Input& input : inputs) viewed.push_back(view::look_at(input));
  return viewed;
}

int write_perfetto(const std::vector<view::Viewed>& viewed, int status) {
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
