// A tensor that each marked round makes anew, larger than the one before: results that are concatenated to those before them.
#pragma once

#include "facts/growth.h"

namespace faultline {

// With `rounds`, `stacks`, `kept_bytes` (the last), `bytes_per_round` and `least_bytes` (the rise from one to the next).
std::vector<Growth> find_growth_in_place(const Trace& trace, const Lifetimes& lifetimes, const StackFacts& stacks,
                                         std::uint16_t device, const std::vector<std::uint32_t>& marks,
                                         std::uint64_t peak_bytes);

// Without marks: a line that joins (aten::cat) more to what it made before, again and again until `end`: a cache of keys and values. One that begins anew, smaller, is let go between.
std::vector<Growth> find_growth_by_joining(const Trace& trace, const Lifetimes& lifetimes, const StackFacts& stacks,
                                           std::uint16_t device, std::uint32_t end, std::uint64_t peak_bytes);

}  // namespace faultline
