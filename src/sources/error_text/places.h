// Where in the program the failure happened that a message tells of, by what the text holds: tracebacks, and the lines that made a graph's operation.
#pragma once

#include <string_view>
#include <vector>

#include "sources/error_text/survey.h"
#include "sources/error_text/traceback.h"

namespace faultline {

// Outermost first. `at` and `again` are where the words stand that a traceback ends in.
std::vector<TracebackFrame> frames_of(std::string_view text, const Chosen& chosen, std::size_t at, std::size_t again);

// Where a request that failed in a pool ends in TensorFlow's words for a copy that found no memory: one failure, told twice.
std::size_t disguise_of(std::string_view text, const Chosen& chosen);

}  // namespace faultline
