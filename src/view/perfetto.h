// What was recorded, for Perfetto's own viewer (ui.perfetto.dev): per GPU the memory over time, in all and by category, line and module, calls by stream, operations, steps,
// failures, and the findings at their moments.
//
// It is made of the scenes that the page is made of (view/scene.h), with their bounds: millions of events give some megabytes. Where a value stands for several events it is
// that of their highest moment, and the track's description says so.
#pragma once

#include <span>
#include <string>

#include "view/html_page.h"

namespace faultline::view {

// The inputs that were looked at must still be there. Empty where there is nothing to draw.
std::string make_perfetto(std::span<const Viewed> inputs);

}  // namespace faultline::view
