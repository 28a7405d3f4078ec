#include "sources/bfc_dump/pool_dump.h"

namespace faultline {

void settle(PoolDump& dump) {
  dump.unread_bytes = dump.unplaced_bytes = 0;
  std::erase_if(dump.regions, [&](const DumpedRegion& region) {
    if (region.chunk_count != 0) return false;
    dump.unplaced_bytes += region.size_bytes;
    return true;
  });
  for (DumpedRegion& region : dump.regions) {
    const DumpedChunk& first = dump.chunks[region.first_chunk];
    const DumpedChunk& last = dump.chunks[region.first_chunk + region.chunk_count - 1];
    region.address = first.address;
    const std::uint64_t covered = last.address + last.size_bytes - first.address;
    std::uint64_t read = 0;
    for (std::uint32_t at = 0; at < region.chunk_count; ++at) read += dump.chunks[region.first_chunk + at].size_bytes;
    if (!region.is_stated || region.size_bytes < covered) {
      if (region.is_stated) ++dump.odd_lines;
      region.size_bytes = covered;
    }
    dump.unread_bytes += region.size_bytes - read;
  }
  // What the pool says it has taken beyond the regions that can be read.
  std::uint64_t regions = dump.unplaced_bytes;
  for (const DumpedRegion& region : dump.regions) regions += region.size_bytes;
  if (dump.pool && dump.has_map() && dump.pool->min > regions) dump.unplaced_bytes += dump.pool->min - regions;
}

}  // namespace faultline
