#include "sources/messages/xids.h"

#include <algorithm>
#include <array>

#include "sources/messages/kinds.h"

namespace faultline {
namespace {

constexpr auto kXids = std::to_array<Xid>({
    {13, Xid::kOther, kLaunchError,
     "a kernel of this process did something illegal (graphics engine exception): most often an access out of range or "
     "a bad instruction of the program, rarely the hardware"},
    {31, Xid::kOther, rule_name::kIllegalAddress, "a kernel touched an address that is not mapped (MMU fault)"},
    {43, Xid::kConsequence, kLaunchError,
     "the device stopped a process's work after a fault of that process; the device itself is well"},
    {45, Xid::kConsequence, kLaunchError,
     "work was cleaned up because the process had ended or failed: a consequence, look for the error before it"},
    {32, Xid::kOther, kLaunchError, "the device got commands it could not read: driver or bus, rarely the program"},
    {8, Xid::kOther, kLaunchError, "a kernel ran longer than the driver allows"},
    {48, Xid::kHardware, kLaunchError, "a memory error that could not be corrected (double-bit ECC)"},
    {61, Xid::kHardware, kLaunchError, "an internal breakpoint or warning of the device's microcontroller"},
    {62, Xid::kHardware, kLaunchError, "the device's microcontroller halted"},
    {63, Xid::kHardware, kLaunchError, "a page of the device's memory was retired or remapped after ECC errors"},
    {64, Xid::kHardware, kLaunchError, "a page of the device's memory could not be retired or remapped"},
    {69, Xid::kOther, kLaunchError,
     "the device was given work that its engine does not know (graphics engine class error): program or driver, rarely "
     "the hardware"},
    {74, Xid::kHardware, kLaunchError, "an NVLink error"},
    {79, Xid::kHardware, kLaunchError, "the GPU has fallen off the bus: power, heat, the slot or the card"},
    {94, Xid::kHardware, kLaunchError, "a contained memory error (ECC): the process that used that memory was killed"},
    {95, Xid::kHardware, kLaunchError, "an uncontained memory error (ECC): the device needs a reset"},
    {109, Xid::kOther, kLaunchError, "a program's work did not give the device free in time (context switch timeout)"},
    {140, Xid::kHardware, kLaunchError, "a memory error that could not be recovered (ECC)"},
    {145, Xid::kHardware, kLaunchError, "an NVLink error"},
    {149, Xid::kHardware, kLaunchError, "an NVLink error"},
    {154, Xid::kConsequence, kLaunchError,
     "the driver says what would bring the device back (a reset or a restart, as the line says): a consequence, look "
     "for the Xid before it"},
    {119, Xid::kHardware, kLaunchError, "the device's system processor (GSP) does not answer"},
    {120, Xid::kHardware, kLaunchError, "the device's system processor (GSP) failed"},
});

}  // namespace

const Xid* xid_of(std::optional<std::uint64_t> number) {
  const auto known = std::find_if(kXids.begin(), kXids.end(), [&](const Xid& xid) { return number == xid.number; });
  return known == kXids.end() ? nullptr : &*known;
}

}  // namespace faultline
