// The exceptions a GPU reports, in the debugger's words.
#pragma once

#include <cstdint>
#include <string>

namespace faultline {

// "Warp Illegal Address"; a number without a name is "Exception 99".
std::string exception_name(std::uint32_t number);
// Whether a memory access raises it, so that the instruction it points to tells the address.
bool is_access_exception(std::uint32_t number);
// Whether the address of each access was a multiple of its size is what it is about.
bool is_alignment_exception(std::uint32_t number);

}  // namespace faultline
