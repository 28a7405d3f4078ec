#include "rules/illegal_address/fault_kinds.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace faultline {
namespace {

// "CUDA_ERROR_ILLEGAL_ADDRESS" and "Warp Illegal Address" alike.
std::string plain(std::string_view text) {
  std::string result;
  for (const char c : text) result += std::isalnum(static_cast<unsigned char>(c)) ? static_cast<char>(std::tolower(static_cast<unsigned char>(c))) : ' ';
  return result;
}

}  // namespace

FaultKind kind_of_fault(std::string_view what, std::uint32_t code) {
  struct Named {
    std::string_view words;
    FaultKind kind;
  };
  static constexpr std::array<Named, 15> kNames = {{{"illegal address", FaultKind::kIllegalAddress}, {"mmu fault", FaultKind::kIllegalAddress},
      {"out of range", FaultKind::kLocalRange}, {"misaligned", FaultKind::kMisaligned}, {"assert", FaultKind::kAssert},
      {"illegal instruction", FaultKind::kIllegalInstruction}, {"invalid pc", FaultKind::kInvalidPc}, {"invalid address space", FaultKind::kAddressSpace},
      {"stack", FaultKind::kStack}, {"timeout", FaultKind::kTimeout}, {"ecc", FaultKind::kHardware}, {"nvlink", FaultKind::kHardware},
      {"launch failed", FaultKind::kLaunchFailure}, {"hardware", FaultKind::kHardware}, {"trap", FaultKind::kTrap}}};
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

const FaultWords& words_of(FaultKind kind) {
  static constexpr FaultWords kUnknown{"api/launch-error", "was stopped by an error", ""};
  static constexpr FaultWords kIllegal{"access/illegal-address", "touched an address that is not mapped on the device", ""};
  static constexpr FaultWords kLocal{"access/illegal-address", "touched an address outside its shared or local memory",
                                     "Check the index into shared memory, and that the launch asks for as much dynamic shared memory as the kernel uses."};
  static constexpr FaultWords kMisaligned{"access/misaligned", "touched an address that its access is not aligned to", ""};
  static constexpr FaultWords kAssert{"api/launch-error", "failed a check of its own (a device-side assert)",
                                      "The kernel printed the condition that failed on standard error: a line with \"Assertion `…` failed\"."};
  static constexpr FaultWords kInstruction{"api/launch-error", "ran into an instruction that the device does not know",
                                           "A jump through a damaged function pointer, or code built for another architecture."};
  static constexpr FaultWords kPc{"api/launch-error", "jumped to an address that holds no code", "A damaged function pointer or return address: look for a write beyond a local array."};
  static constexpr FaultWords kSpace{"api/launch-error", "used an address of one kind of memory (shared, local, global) with an instruction for another",
                                     "Look for a pointer to shared memory that is kept or passed on as one to global memory."};
  static constexpr FaultWords kStack{"api/launch-error", "used more stack than there was, or damaged it",
                                     "Deep recursion needs a larger stack (cudaDeviceSetLimit(cudaLimitStackSize, …)); a write beyond a local array looks the same."};
  static constexpr FaultWords kTimeout{"api/launch-error", "ran longer than the driver allows", "Split its work, or run it on a device that drives no display."};
  static constexpr FaultWords kHardware{"api/launch-error", "was stopped because the device reported an error of its own: hardware, not the program",
                                        "nvidia-smi -q -d ECC, and lines with Xid in dmesg, tell more; reset or replace the device."};
  static constexpr FaultWords kFailure{"api/launch-error", "was stopped by the hardware without a more precise reason",
                                       "An illegal access can end so; if it comes at random places, look at the device too: nvidia-smi -q -d ECC, and Xid lines in dmesg."};
  static constexpr FaultWords kTrap{"api/launch-error", "was stopped by a trap instruction: __trap(), or a check that a compiler made one",
                                    "Look at the condition that leads to the line named."};
  switch (kind) {
    case FaultKind::kIllegalAddress: return kIllegal;
    case FaultKind::kLocalRange: return kLocal;
    case FaultKind::kMisaligned: return kMisaligned;
    case FaultKind::kAssert: return kAssert;
    case FaultKind::kIllegalInstruction: return kInstruction;
    case FaultKind::kInvalidPc: return kPc;
    case FaultKind::kAddressSpace: return kSpace;
    case FaultKind::kStack: return kStack;
    case FaultKind::kTimeout: return kTimeout;
    case FaultKind::kHardware: return kHardware;
    case FaultKind::kLaunchFailure: return kFailure;
    case FaultKind::kTrap: return kTrap;
    case FaultKind::kUnknown: break;
  }
  return kUnknown;
}

bool checks_index(std::string_view kernel) {
  static constexpr std::array<std::string_view, 12> kMarks = {"indexSelect", "index_elementwise", "indexing_backward", "index_put", "index_kernel", "indexFunc",
      "gather", "scatter", "embedding", "nll_loss", "take_put", "ClassNLL"};
  const bool is_torch = kernel.find("at::native") != std::string_view::npos || kernel.find("at6native") != std::string_view::npos || kernel.find("cunn_") != std::string_view::npos;
  return is_torch && std::any_of(kMarks.begin(), kMarks.end(), [&](std::string_view mark) { return kernel.find(mark) != std::string_view::npos; });
}

}  // namespace faultline
