#include "trace/event.h"

#include <array>

namespace faultline {

std::string_view name_of(EventKind kind) {
  static constexpr std::array<std::string_view, kEventKindCount> kNames = {
      "Alloc",  "Free", "AllocFailed", "Map",     "Unmap", "HostPin",    "HostUnpin", "Copy",      "Set",   "Launch",
      "Record", "Wait", "Sync",        "OpBegin", "OpEnd", "TensorNote", "StepMark",  "Violation", "Fault", "Estimate"};
  return kNames[static_cast<std::size_t>(kind)];
}

}  // namespace faultline
