// Memory that grows round after round: which lines keep what they make.
//
// A round is a step where the recording marks steps; elsewhere it is a return of the user's own loop to a line (the "program" frame of a
// stack: the innermost user frame outside any module's forward). Activations that pile up inside one forward pass are not growth: one pass is
// one round, however many layers it has.
//
// A line grows when what it makes stays: nearly every stretch of the recording, from its first allocation to the end, leaves about
// the same number of survivors. Memory that turns over has survivors too, but young ones; a phase that fills memory once has none late.
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

struct GrowingStack {
  StackId stack;
  std::uint64_t kept_count = 0;   // allocations alive at the end
  std::uint64_t kept_bytes = 0;
};

struct Growth {
  StackId program;                 // the loop's line; 0 when only the engine's frameless threads allocate
  std::uint64_t rounds = 0;
  std::string round_kind;          // "optimizer steps (AdamW)" or "rounds"
  std::vector<GrowingStack> stacks;  // most bytes first
  std::uint64_t kept_bytes = 0;
  std::uint64_t kept_count = 0;
  std::uint64_t bytes_per_round = 0;
  std::uint32_t first_event = 0;
};

// `end`: the moment to judge at, a failure or the last event.
std::vector<Growth> find_growth(const Trace& trace, const Lifetimes& lifetimes, const StackFacts& stacks, const Steps& steps,
                                std::uint16_t device, std::uint32_t end, std::uint64_t peak_bytes);

}  // namespace faultline
