#include "rules/calling_frame.h"

#include <algorithm>
#include <array>

#include "facts/stack_facts.h"

namespace faultline {
namespace {

bool hands_on(std::string_view file) {
  static constexpr std::array<std::string_view, 10> kPlaces = {
      "torch/_dynamo/",         "torch/_compile.py",    "torch/_ops.py",   "torch/_tensor.py",
      "torch/overrides.py",     "torch/_subclasses/",   "torch/_library/", "torch/utils/_python_dispatch.py",
      "torch/utils/_device.py", "torch/utils/_stats.py"};
  return std::any_of(kPlaces.begin(), kPlaces.end(),
                     [&](std::string_view place) { return file.find(place) != std::string_view::npos; });
}

}  // namespace

StackId calling_frame(const Trace& trace, StackId stack) {
  constexpr std::size_t kMostFrames = 256;
  for (std::size_t looked_at = 0; stack.value != 0 && looked_at < kMostFrames;
       stack = trace.stacks.parent(stack), ++looked_at) {
    const std::string_view file = trace.strings.at(trace.stacks.frame(stack).file);
    if (!is_native_file(file) && !(is_library_file(file) && hands_on(file))) return stack;
  }
  return stack;
}

}  // namespace faultline
