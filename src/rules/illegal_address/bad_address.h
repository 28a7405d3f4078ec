// The address of a fault beside the program's memory: which of the warp's addresses is the bad one, relative to which tensor, and what the kernel was given.
#pragma once

#include <cstdint>
#include <string>

#include "facts/facts.h"
#include "rules/finding.h"

namespace faultline {

// Continues "Kernel K …" and fills the finding's memory, places, evidence and tries.
std::string describe_access(const Facts& facts, std::uint32_t event, const Fault& fault, bool misaligned, Finding& finding);

// Which memory, with where it was allocated and freed; the place must be known.
void set_memory(const Facts& facts, const AddressPlace& place, std::string_view then, Finding& finding);

// The memory behind the kernel's parameters, as a fault's core dump or the launch before it has them.
void add_arguments(const Facts& facts, std::uint32_t fault_event, const Fault& fault, Finding& finding);
void add_launch_arguments(const Facts& facts, std::uint32_t launch_event, Finding& finding);

}  // namespace faultline
