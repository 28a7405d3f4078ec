// Ways to divide the memory of a device: what it is for, which line made it, which module it belongs to.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "facts/facts.h"
#include "view/scene.h"

namespace faultline::view {

// Those that the recording can tell. Of lines and modules those that once held most have a group each, the others one together.
std::vector<Grouping> make_groupings(const Facts& facts, std::size_t device_slot);

// When each line held most: to look at what a finding names.
struct LineMoment {
  FrameId frame;
  std::uint64_t bytes = 0;
  std::uint32_t event = 0;
};
std::vector<LineMoment> line_moments(const Facts& facts, std::uint16_t device);

}  // namespace faultline::view
