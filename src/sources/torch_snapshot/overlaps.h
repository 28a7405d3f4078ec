// Blocks that a recording puts where another one is in use, which no allocator does.
#pragma once

#include <cstdint>

#include "trace/trace.h"

namespace faultline::torch_snapshot {

std::uint64_t overlapping_blocks(const Trace& trace);

}  // namespace faultline::torch_snapshot
