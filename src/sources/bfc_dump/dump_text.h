// The map of a BFC pool that TensorFlow, JAX and XLA print when a request fails, in every form since 2016.
//
// It may stand anywhere in a log, behind any prefix, with lines of others in between, cut, doubled, or mixed with another pool's. Lines are known by their words, never by a version:
// a chunk's line by "at ADDRESS … of size N", a region's by "Next region of size N". A line that was lost shows as a gap, for chunks cover their region. Where two maps
// are mixed and no prefix tells them apart, a chunk belongs to the map that it continues.
//
// The search for the first such line runs at the speed of memmem; only what lies around hits is read line by line.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "sources/bfc_dump/pool_dump.h"

namespace faultline {

struct PoolDumps {
  std::vector<PoolDump> dumps;  // in the order of the text; only such as hold something of a pool
  std::uint64_t not_kept = 0;   // beyond what is kept
};

PoolDumps read_pool_dumps(std::string_view text);

}  // namespace faultline
