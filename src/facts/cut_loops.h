// Loops that a dry run ended before their data did, while memory rose in them: it marks where their rounds begin (python/faultline/plan/torch/program/beyond_loops.py).
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "trace/trace.h"

namespace faultline {

// A growth whose rounds are those of such a loop has this as its kind.
inline constexpr std::string_view kRoundsOfCutLoop = "rounds of a loop that was cut short";

// And the finding about it this, with how many of them were seen.
inline constexpr const char* kCutLoopRounds = "rounds_of_cut_loop";

struct CutLoop {
  std::uint64_t number = 0;          // as the dry run counts them
  std::vector<std::uint32_t> marks;  // events: each the beginning of a round and the end of the one before
};

// With at least `least` marks, in the order of their last ones.
std::vector<CutLoop> cut_loops_of(const Trace& trace, std::size_t least);

}  // namespace faultline
