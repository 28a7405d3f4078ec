#include "trace/trace.h"

#include <array>
#include <utility>

namespace faultline {

std::string_view name_of(HeapKind kind) {
  static constexpr std::array<std::string_view, kHeapKindCount> kNames = {
      "driver", "torch",   "torch-pinned-host", "bfc",         "stream-ordered-pool",
      "other",  "managed", "imported",          "pinned-host", "registered-host"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string describe_capabilities(std::uint32_t set) {
  static constexpr std::array<std::pair<Capability, std::string_view>, 9> kNames = {
      {{kAddresses, "addresses"},
       {kStacks, "stacks"},
       {kStreams, "streams"},
       {kAccesses, "accesses"},
       {kTensors, "tensors"},
       {kCompleteFromStart, "a recording complete from the start"},
       {kEvents, "events"},
       {kTimes, "times"},
       {kSteps, "step marks"}}};
  std::string text;
  for (const auto& [bit, name] : kNames) {
    if ((set & bit) == 0) continue;
    if (!text.empty()) text += ", ";
    text += name;
  }
  return text;
}

}  // namespace faultline
