#include "trace/fault_kind.h"

#include <array>
#include <cctype>
#include <string>

namespace faultline {
namespace {

// "CUDA_ERROR_ILLEGAL_ADDRESS" and "Warp Illegal Address" alike.
std::string plain(std::string_view text) {
  std::string result;
  for (const char c : text)
    result += std::isalnum(static_cast<unsigned char>(c))
                  ? static_cast<char>(std::tolower(static_cast<unsigned char>(c)))
                  : ' ';
  return result;
}

}  // namespace

FaultKind kind_of_fault(std::string_view what, std::uint32_t code) {
  struct Named {
    std::string_view words;
    FaultKind kind;
  };
  static constexpr std::array<Named, 21> kNames = {{{"illegal address", FaultKind::kIllegalAddress},
                                                    {"mmu fault", FaultKind::kIllegalAddress},
                                                    {"out of range", FaultKind::kLocalRange},
                                                    {"misaligned", FaultKind::kMisaligned},
                                                    {"assert", FaultKind::kAssert},
                                                    {"illegal instruction", FaultKind::kIllegalInstruction},
                                                    {"invalid pc", FaultKind::kInvalidPc},
                                                    {"invalid address space", FaultKind::kAddressSpace},
                                                    {"stack", FaultKind::kStack},
                                                    {"timeout", FaultKind::kTimeout},
                                                    {"ecc", FaultKind::kHardware},
                                                    {"nvlink", FaultKind::kHardware},
                                                    {"launch failed", FaultKind::kLaunchFailure},
                                                    {"hardware", FaultKind::kHardware},
                                                    {"trap", FaultKind::kTrap},
                                                    {"launch failure", FaultKind::kLaunchFailure},
                                                    {"launch resources", FaultKind::kResources},
                                                    {"launch configuration", FaultKind::kConfiguration},
                                                    {"no kernel image", FaultKind::kNoKernelImage},
                                                    {"illegal state", FaultKind::kEarlierError},
                                                    {"shared memory limit", FaultKind::kSharedMemoryLimit}}};
  const std::string text = plain(what);
  for (const Named& named : kNames) {
    if (text.find(named.words) != std::string::npos) return named.kind;
  }
  switch (code) {
    case 700: return FaultKind::kIllegalAddress;
    case 716: return FaultKind::kMisaligned;
    case 710: return FaultKind::kAssert;
    case 715: return FaultKind::kIllegalInstruction;
    case 718: return FaultKind::kInvalidPc;
    case 717: return FaultKind::kAddressSpace;
    case 714: return FaultKind::kStack;
    case 702: return FaultKind::kTimeout;
    case 214:
    case 220: return FaultKind::kHardware;
    case 719: return FaultKind::kLaunchFailure;
    default: return FaultKind::kUnknown;
  }
}

}  // namespace faultline
