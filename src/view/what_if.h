// Replays of a recording beside it: the settings worth trying, the GPUs next to what it needs, and room for all of it where it was refused memory.
#pragma once

#include "rules/judge.h"
#include "view/scene.h"

namespace faultline::view {

// Of a recording that a model repeats as it was, or that a model made (a plan). `most_events`: that may be replayed in all. The scene has its columns.
void add_what_ifs(const Judgement& judgement, std::size_t device_slot, std::uint64_t most_events, Scene& scene);

}  // namespace faultline::view
