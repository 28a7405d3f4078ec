// What lives at a moment by call stack, where the allocations that are kept one by one do not tell it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "facts/facts.h"
#include "view/scene.h"
#include "view/scene_tables.h"

namespace faultline::view {

// The call stacks of the allocations that are not kept, at `most` moments: each the highest of as many columns. After add_allocations.
void add_rest_of_stacks(const Facts& facts, std::uint16_t device, std::size_t most, SceneTables& tables, Scene& scene);

// The largest of the peak, in words, for those who see no picture.
void add_largest_stacks(const Facts& facts, std::uint16_t device, Scene& scene);

}  // namespace faultline::view
