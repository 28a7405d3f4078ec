// What happened beside allocations: launches, copies and waits by stream, what the program marked, and the moments that matter.
#pragma once

#include <cstddef>

#include "facts/facts.h"
#include "view/scene.h"
#include "view/scene_tables.h"

namespace faultline::view {

void add_calls(const Facts& facts, std::uint16_t device, std::size_t most, SceneTables& tables, Scene& scene);
void add_spans(const Facts& facts, std::size_t most, SceneTables& tables, Scene& scene);
void add_marks(const Facts& facts, std::size_t device_slot, Scene& scene);

}  // namespace faultline::view
