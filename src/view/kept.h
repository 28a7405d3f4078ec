// What is shown one by one: the allocations that can be seen at some zoom, and the segments they lie in.
#pragma once

#include <cstddef>
#include <vector>

#include "facts/facts.h"
#include "view/scene.h"
#include "view/scene_tables.h"

namespace faultline::view {

// Of the program's allocations on the device, in the order in which they were made: all, or `most`. One half of those takes most memory for longest
// and is seen in the whole picture; of the rest every stretch of time has the same number, its largest.
std::vector<AllocationId> choose_allocations(const Facts& facts, std::uint16_t device, std::size_t most,
                                             std::uint64_t& all);

void add_allocations(const Facts& facts, std::uint16_t device, std::size_t most, SceneTables& tables, Scene& scene);
// The largest, whole or as far as memory is mapped behind them.
void add_segments(const Facts& facts, std::uint16_t device, std::size_t most, Scene& scene);

}  // namespace faultline::view
