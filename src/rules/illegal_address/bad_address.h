// The address of a fault beside the program's memory: which of the warp's addresses is the bad one, relative to which tensor, and what the kernel was given.
#pragma once

#include <cstdint>
#include <string>

#include "facts/facts.h"
#include "rules/finding.h"

namespace faultline {

// Continues "Kernel K …" and fills the finding's memory, places, evidence and tries.
std::string describe_access(const Facts& facts, std::uint32_t event, const Fault& fault, bool misaligned,
                            Finding& finding);

// The memory behind the kernel's parameters, as a launch, or a fault's core dump or the launch before it have them.
void add_arguments(const Facts& facts, std::uint32_t event, const Fault* fault, Finding& finding);

}  // namespace faultline
