// Rounds that do the same each time: other lines make memory and let it go again, in the same order and in the same sizes, and one line keeps what it makes.
//
// Layers of one pass do so too where each frees what it needs in between; they need as many weights, which the caller looks for. What is loaded comes from
// the host, where a recording tells. What is left is a loop, or something that is filled once: a recurrent cell whose outputs are collected, say.
#pragma once

#include "facts/heap_uses.h"
#include "facts/lifetimes.h"
#include "trace/trace.h"

namespace faultline {

// Whether nine in ten of the rounds between allocations of the stack `kept`, from event `first` to `last`, are alike. `end`: what is released by then was let go.
bool rounds_are_alike(const Trace& trace, const HeapUses& uses, const Lifetimes& lifetimes, std::uint16_t device,
                      StackId kept, std::uint32_t first, std::uint32_t last, std::uint32_t end);

}  // namespace faultline
