// What kind of fault the hardware, the driver or a message speaks of.
#pragma once

#include <cstdint>
#include <string_view>

namespace faultline {

enum class FaultKind : std::uint8_t {
  kUnknown,
  kIllegalAddress,
  kLocalRange,
  kMisaligned,
  kAssert,
  kIllegalInstruction,
  kInvalidPc,
  kAddressSpace,
  kStack,
  kTimeout,
  kHardware,
  kLaunchFailure,
  kTrap,
  kResources,
  kConfiguration,
  kNoKernelImage,
  kEarlierError,
  kSharedMemoryLimit,
};

// By an exception's name ("Warp Illegal Address"), the driver's error ("CUDA_ERROR_ILLEGAL_ADDRESS") or a message's kind ("illegal-address"); else by the driver's code.
FaultKind kind_of_fault(std::string_view what, std::uint32_t code = 0);

}  // namespace faultline
