#include "sources/bfc_dump/pool_dump.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

namespace faultline {
namespace {

std::uint64_t end_of(const DumpedChunk& chunk) { return chunk.address + chunk.size_bytes; }
bool lies_before(const DumpedChunk& a, const DumpedChunk& b) { return a.address < b.address; }

// Adds a chunk behind the others of its region; one that stands there already, or overlaps, is counted.
void add_to_row(PoolDump& dump, std::uint32_t first_chunk, const DumpedChunk& chunk) {
  if (dump.chunks.size() == first_chunk || chunk.address >= end_of(dump.chunks.back()))
    return dump.chunks.push_back(chunk);
  const DumpedChunk& last = dump.chunks.back();
  const bool is_same = last.address == chunk.address && last.size_bytes == chunk.size_bytes;
  ++(is_same ? dump.repeated_lines : dump.odd_lines);
}

// Free neighbours of one region would be one chunk.
bool continues(const DumpedChunk& last, const DumpedChunk& chunk) {
  return chunk.address < end_of(last) || (chunk.address == end_of(last) && (chunk.in_use || last.in_use));
}

// Which of so many are left, without a walk over those that are taken: regions may claim to lie over each other.
class Unplaced {
 public:
  explicit Unplaced(std::size_t count) : next_(count + 1) { std::iota(next_.begin(), next_.end(), std::size_t{0}); }
  void take(std::size_t at) { next_[at] = at + 1; }
  std::size_t from(std::size_t at) {
    while (next_[at] != at) at = next_[at] = next_[next_[at]];
    return at;
  }

 private:
  std::vector<std::size_t> next_;
};

// Chunks that stand behind no line of their region: into the region whose place is theirs, else into rows without a gap.
void place_loose(PoolDump& dump) {
  if (dump.loose.empty()) return;
  std::vector<DumpedChunk> loose = std::exchange(dump.loose, {});
  std::stable_sort(loose.begin(), loose.end(), lies_before);
  const std::vector<DumpedChunk> named = std::exchange(dump.chunks, {});
  Unplaced unplaced(loose.size());
  for (DumpedRegion& region : dump.regions) {
    const std::uint32_t first = std::exchange(region.first_chunk, static_cast<std::uint32_t>(dump.chunks.size()));
    if (region.chunk_count == 0) continue;
    const auto begin = named.begin() + first, end = begin + region.chunk_count;
    const std::uint64_t region_end = begin->address + region.size_bytes;
    std::vector<DumpedChunk> both(begin, end);
    const auto from = std::lower_bound(loose.begin(), loose.end(), *begin, lies_before) - loose.begin();
    for (std::size_t at = unplaced.from(static_cast<std::size_t>(from));
         at < loose.size() && end_of(loose[at]) <= region_end; at = unplaced.from(at)) {
      both.push_back(loose[at]);
      unplaced.take(at);
    }
    std::stable_sort(both.begin(), both.end(), lies_before);
    for (const DumpedChunk& chunk : both) add_to_row(dump, region.first_chunk, chunk);
    region.chunk_count = static_cast<std::uint32_t>(dump.chunks.size()) - region.first_chunk;
  }
  const std::size_t stated = dump.regions.size();
  for (std::size_t at = unplaced.from(0); at < loose.size(); at = unplaced.from(at + 1)) {
    if (dump.regions.size() == stated || !continues(dump.chunks.back(), loose[at]))
      dump.regions.push_back({0, 0, false, static_cast<std::uint32_t>(dump.chunks.size()), 0});
    DumpedRegion& region = dump.regions.back();
    add_to_row(dump, region.first_chunk, loose[at]);
    region.chunk_count = static_cast<std::uint32_t>(dump.chunks.size()) - region.first_chunk;
  }
}

// What the pool has taken, by what it says of itself, beyond what can be read.
void count_missing(PoolDump& dump, std::uint64_t empty_regions) {
  dump.unplaced = ByteInterval::exactly(empty_regions);
  std::uint64_t read = empty_regions;
  for (const DumpedRegion& region : dump.regions) read += region.size_bytes;
  const auto beyond_read = [&](std::uint64_t total) { return std::max(read, total) - read + empty_regions; };
  if (!dump.has_map()) return;
  const bool misses_chunks = dump.bins && dump.bins->chunks > dump.chunks.size();
  if (dump.pool && (dump.pool->min > read || misses_chunks))
    dump.unplaced = {beyond_read(dump.pool->min), beyond_read(dump.pool->max)};
  else if (!dump.pool && misses_chunks)
    dump.unplaced = {beyond_read(dump.bins->bytes.min), beyond_read(dump.bins->bytes.max)};
  dump.is_open = !dump.pool && !dump.bins && !dump.is_whole_by_form;
}

}  // namespace

std::optional<std::uint64_t> PoolDump::in_use_by_sizes() const {
  ByteInterval sum;  // adds up without an overflow
  for (const DumpedSize& size : sizes) sum = sum + ByteInterval::exactly(size.count * size.size_bytes);
  if (!in_use_in_all || sum.min < in_use_in_all->min || sum.min > in_use_in_all->max) return std::nullopt;
  return sum.min;
}

void settle(PoolDump& dump) {
  place_loose(dump);
  dump.unread_bytes = 0;
  std::uint64_t empty_regions = 0;
  std::erase_if(dump.regions, [&](const DumpedRegion& region) {
    if (region.chunk_count != 0) return false;
    empty_regions += region.size_bytes;
    return true;
  });
  for (DumpedRegion& region : dump.regions) {
    const DumpedChunk& first = dump.chunks[region.first_chunk];
    const DumpedChunk& last = dump.chunks[region.first_chunk + region.chunk_count - 1];
    region.address = first.address;
    const std::uint64_t covered = end_of(last) - first.address;
    std::uint64_t read = 0;
    for (std::uint32_t at = 0; at < region.chunk_count; ++at) read += dump.chunks[region.first_chunk + at].size_bytes;
    if (!region.is_stated || region.size_bytes < covered) {
      if (region.is_stated) ++dump.odd_lines;
      region.size_bytes = covered;
    }
    dump.unread_bytes += region.size_bytes - read;
  }
  count_missing(dump, empty_regions);
}

}  // namespace faultline
