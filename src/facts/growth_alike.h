// Rounds that do the same each time: other lines make memory and let it go again, of the same sizes, and one line keeps what it makes.
//
// How often a line does so within a round does not count: episodes are as long as they come out. Layers of one pass do so too where each frees what it needs in between; they need as
// many weights, which the caller looks for. What is loaded comes from the host, where a recording tells. What is left is a loop, or something that is filled once: a recurrent cell
// whose outputs are collected, say. A pass that records a graph keeps more than one tensor of each layer.
#pragma once

#include "facts/heap_uses.h"
#include "facts/lifetimes.h"
#include "trace/trace.h"

namespace faultline {

struct AlikeRounds {
  std::uint64_t rounds = 0;  // as many as there are tensors that stay
  bool alike = false;        // nine in ten of them
  bool keep_others = false;  // other lines keep something of a round, too
  bool load = false;         // from the host
};

// Between allocations of the stack `kept` that are alive at `end`, from event `first` to `last`.
AlikeRounds alike_rounds(const Trace& trace, const HeapUses& uses, const Lifetimes& lifetimes, std::uint16_t device,
                         StackId kept, std::uint32_t first, std::uint32_t last, std::uint32_t end);

}  // namespace faultline
