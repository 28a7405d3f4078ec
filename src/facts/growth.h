// Memory that grows round after round: which lines keep what they make.
//
// Layers of one pass look like rounds of a loop: both come back to a line and keep what they made. So growth needs evidence of rounds: marked steps,
// backward passes, calls of a whole model from the program's own loop, sizes that change as data does and layers do not. A line that keeps memory
// without such evidence is given too, with RoundsBy::kUnknown: nobody can tell from the recording what it was.
//
// A line grows when what it makes stays: nearly every stretch of the rounds leaves about the same number of survivors, and at the end of
// nearly every stretch more is alive than before. Memory that turns over has survivors too, but young ones; a phase that fills memory once has none late.
// What setting up a program makes (parameters, optimizer state, loaded weights, graph pools) does not count.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "facts/lifetimes.h"
#include "facts/stack_facts.h"
#include "facts/steps.h"
#include "trace/trace.h"

namespace faultline {

enum class RoundsBy : std::uint8_t {
  kSteps,       // marked by the recording
  kBackward,    // passes of backward
  kModelCalls,  // a whole model is called in each round
  kSizes,       // each round has its own size: data, not layers
  kMany,        // one line, again and again, and nothing is let go in between
  kUnknown,
};

struct GrowingStack {
  StackId stack;
  AllocationId oldest;
  std::uint64_t kept_count = 0;   // allocations alive at the end
  std::uint64_t kept_bytes = 0;
};

struct Growth {
  StackId program;                 // the loop's line; 0 when only the engine's frameless threads allocate
  std::uint64_t rounds = 0;
  RoundsBy rounds_by = RoundsBy::kUnknown;
  std::string round_kind;          // "optimizer steps (AdamW)", "backward passes" or "rounds"
  std::vector<GrowingStack> stacks;  // most bytes first
  std::uint64_t kept_bytes = 0;
  std::uint64_t kept_count = 0;
  std::uint64_t bytes_per_round = 0;
  std::uint64_t rise_bytes = 0;    // of the device's low-water mark
  bool in_every_stretch = true;
  bool let_go_later = false;       // after the last marked round
  std::uint32_t first_event = 0;
};

// `end`: the moment to judge at, a failure or the last event.
std::vector<Growth> find_growth(const Trace& trace, const Lifetimes& lifetimes, const StackFacts& stacks, const Steps& steps,
                                std::uint16_t device, std::uint32_t end, std::uint64_t peak_bytes);

}  // namespace faultline
