// When to look: the moment of the recording that a finding speaks of.
#pragma once

#include <cstdint>
#include <vector>

#include "rules/judge.h"

namespace faultline::view {

// The event for each finding of the judgement on this device; kNever for findings of other devices.
std::vector<std::uint32_t> moments_of(const Judgement& judgement, std::size_t device_slot);

}  // namespace faultline::view
