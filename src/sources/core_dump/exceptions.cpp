#include "sources/core_dump/exceptions.h"

#include <array>
#include <string_view>

namespace faultline {
namespace {

constexpr std::uint32_t kUnknownException = 0xffffffff;

constexpr std::array<std::string_view, 37> kNames = {
    "No Exception",
    "Lane Illegal Address",
    "Lane User Stack Overflow",
    "Device Hardware Stack Overflow",
    "Warp Illegal Instruction",
    "Warp Out-of-range Address",
    "Warp Misaligned Address",
    "Warp Invalid Address Space",
    "Warp Invalid PC",
    "Warp Hardware Stack Overflow",
    "Device Illegal Address",
    "Lane Misaligned Address",
    "Warp Assert",
    "Lane Syscall Error",
    "Warp Illegal Address",
    "Lane Non-migratable Atomic",
    "Invalid Managed Memory Access",
    "Cluster Out-of-range Address",
    "Cluster Block Not Present",
    "Warp Stack Canary",
    "Warp Tensor Memory Access Check",
    "Warp Tensor Memory Leak",
    "Warp Call Requires Newer Driver",
    "Warp Misaligned PC",
    "Warp PC Overflow",
    "Warp Misaligned Register",
    "Warp Illegal Instruction Encoding",
    "Warp Illegal Instruction Parameter",
    "Warp Out-of-range Register",
    "Warp Invalid Constant Address",
    "Warp MMU Fault",
    "Warp Barrier Arrival Mismatch",
    "Cluster Shared Memory Issue",
    "Warp API Stack Error",
    "Warp Block Not Present",
    "Warp User Stack Overflow",
    "TMA Syscall Error",
};

}  // namespace

std::string exception_name(std::uint32_t number) {
  if (number < kNames.size()) return std::string(kNames[number]);
  return number == kUnknownException ? "Unknown Exception" : "Exception " + std::to_string(number);
}

bool is_access_exception(std::uint32_t number) {
  switch (number) {
    case 1:
    case 5:
    case 6:
    case 7:
    case 10:
    case 11:
    case 14:
    case 15:
    case 16:
    case 17:
    case 18:
    case 30: return true;
    default: return false;
  }
}

bool is_alignment_exception(std::uint32_t number) { return number == 6 || number == 11; }

}  // namespace faultline
