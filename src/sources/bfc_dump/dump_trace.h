// Pools as they were found, put into a trace: docs/bfc.md says how they look there.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sources/bfc_dump/pool_dump.h"
#include "trace/trace.h"

namespace faultline {

struct PoolPlace {
  HeapId heap;
  std::uint16_t device = 0;
};

// Adds heaps, devices, the regions and chunks as they were (events that existed before), the end state and what the dumps state. The trace has no events yet, and of pools of one
// name there is one. The places are in the order of the dumps.
std::vector<PoolPlace> add_pools(Trace& trace, std::span<const PoolDump> dumps);

// The request that failed in a pool, where the dump tells its size.
void add_failed_request(Trace& trace, const PoolDump& dump, const PoolPlace& place, StackId stack);

}  // namespace faultline
