// What kind of fault an exception's name or the driver's error is, and its plain words.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "trace/trace.h"

namespace faultline {

enum class FaultKind : std::uint8_t {
  kUnknown, kIllegalAddress, kLocalRange, kMisaligned, kAssert, kIllegalInstruction, kInvalidPc, kAddressSpace, kStack, kTimeout, kHardware, kLaunchFailure, kTrap,
};

FaultKind kind_of_fault(std::string_view what, std::uint32_t code);

struct FaultWords {
  std::string_view rule;
  std::string_view sentence;  // continues "kernel K …"
  std::string_view advice;    // may be empty
};
const FaultWords& words_of(FaultKind kind);

// One of PyTorch's kernels that check an index, by its name.
bool checks_index(std::string_view kernel);

}  // namespace faultline
