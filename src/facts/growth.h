// Memory that grows round after round: which lines keep what they make.
//
// Layers of one pass look like rounds of a loop: both come back to a line and keep what they made. So growth needs evidence of rounds: marked steps,
// backward passes, calls of a whole model from the program's own loop, sizes that change as data does and layers do not. Without marks a loop that is
// over when the program goes on collected something once. A line that keeps memory without such evidence is given too, with RoundsBy::kUnknown:
// nobody can tell from the recording what it was.
//
// A line grows when what it makes stays: nearly every stretch of the rounds leaves about the same number of survivors, and at the end of
// nearly every stretch more is alive than before. Memory that turns over has survivors too, but young ones; a phase that fills memory once has none late.
// What setting up a program makes (parameters, optimizer state, loaded weights, graph pools) does not count, nor do workspaces of libraries.
//
// A tensor that every step makes anew and larger (torch.cat onto itself) grows too, if what else a step makes stays as it is: else the steps themselves grow.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "facts/categories.h"
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
  kMany,        // one line, again and again, nothing is let go in between, and nothing follows
  kAlike,  // one line keeps what it makes, and what else a round makes is let go: of the same lines and sizes each time
  kLooks,  // more was there at every look at what is alive
  kUnknown,
};

struct GrowingStack {
  StackId stack;
  AllocationId oldest;
  std::uint64_t kept_count = 0;  // allocations alive at the end
  std::uint64_t kept_bytes = 0;
};

struct Growth {
  StackId program;  // the loop's line; 0 when only the engine's frameless threads allocate
  std::uint64_t rounds = 0;
  RoundsBy rounds_by = RoundsBy::kUnknown;
  std::string round_kind;            // "optimizer steps (AdamW)", "backward passes" or "rounds"
  std::vector<GrowingStack> stacks;  // most bytes first
  std::uint64_t kept_bytes = 0;
  std::uint64_t kept_count = 0;
  std::uint64_t bytes_per_round = 0;
  // of the device's low-water mark; with marks of its use from the last mark of the warm-up to the last of all
  std::uint64_t rise_bytes = 0;
  std::uint64_t full_rounds = 0;  // from one mark to the next, those of the warm-up left out
  std::uint64_t least_bytes = 0;  // what is kept of any of them is not less
  bool in_every_stretch = true;
  bool let_go_later = false;  // after the last marked round
  bool from_host = false;     // copies of host memory: data that is loaded
  bool is_over = false;       // the program went on to lines that it had not come to before
  bool in_place = false;      // one tensor, made anew in each round, larger each time
  // Without other evidence: what a round makes and lets go is the same each time. Where other lines keep something of it, too, it may be a pass that records a graph, and where
  // each round loads something from the host, data that is prepared: then `rounds_by` is kUnknown.
  bool alike = false, keeps_others = false, loads = false;
  std::uint32_t first_event = 0;
};

// What is let go after it the dry run's stop let go, and not the program. kNever: the program was not stopped.
std::uint32_t stop_of(const Trace& trace);

// `end`: the moment to judge at, a failure or the last event.
std::vector<Growth> find_growth(const Trace& trace, const Lifetimes& lifetimes, const StackFacts& stacks,
                                const Steps& steps, const Categories& categories, std::uint16_t device,
                                std::uint32_t end, std::uint64_t peak_bytes);

}  // namespace faultline
