// Xids, the numbers by which NVIDIA's driver tells of errors in the kernel's log: what each means. A line with one is a message of its own (kXid); its words and its reader stand in operands.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace faultline {

struct Xid {
  enum Cause : std::uint8_t {
    kOther,
    kHardware,
    kConsequence,  // only follows from another: work that is cleaned up, or what would bring the device back
  };
  std::uint64_t number;
  Cause cause;
  std::string_view rule, meaning;
};
// Null: there is no number, or one that is not known.
const Xid* xid_of(std::optional<std::uint64_t> number);

}  // namespace faultline
