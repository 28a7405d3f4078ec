// --format perfetto, of the verbs that have a recording.
#pragma once

#include <span>
#include <vector>

#include "sources/input.h"
#include "view/page.h"

namespace faultline::cli {

// Each is judged once: the report of what is written is in it.
std::vector<view::Viewed> look_at_each(std::span<const Input> inputs);

// What was recorded, for Perfetto's viewer, to standard output; the status given, or that of an input with nothing to draw.
int write_perfetto(const std::vector<view::Viewed>& viewed, int status);

}  // namespace faultline::cli
