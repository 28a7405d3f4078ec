// A BFC pool as it was when a request failed: what TensorFlow, JAX and XLA write of it, as text (dump_text.h) or as a MemoryDump (memory_dump.h), before it becomes a trace (dump_trace.h).
//
//     region 128 MiB   [ free 6 MiB | in use 7 MiB | free 4 MiB | … ]      chunks cover their region without gaps, by address;
//     region  64 MiB   [ …                                            ]    a gap is a line that was lost: `unread_bytes`
//
// Before TensorFlow 1.14 no line names a region: chunks, in any order, are put together by their addresses. Whether lines are missing is told by what the pool counts of itself: its total,
// and its list of bins, which has the number of all chunks. Where neither is left, nobody knows: `is_open`.
//
// Chunks have exact sizes in every form. Totals and limits are exact in some and rounded in others, and are intervals.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/byte_interval.h"

namespace faultline {

inline constexpr std::size_t kMostChunks = std::size_t{4} << 20;  // of all dumps that are kept together
inline constexpr std::size_t kLongestPoolName = 200;              // of a pool or an operation; what is longer is cut

struct DumpedChunk {
  std::uint64_t address = 0;
  std::uint64_t size_bytes = 0;
  std::uint64_t requested_bytes = 0;  // of one in use; 0: the dump does not say
  std::uint32_t op = 0;               // into PoolDump::ops; 0: the dump does not say
  bool in_use = false;
};

struct DumpedRegion {
  std::uint64_t address = 0;
  std::uint64_t size_bytes = 0;  // as stated, else what its chunks add up to
  bool is_stated = false;
  std::uint32_t first_chunk = 0;
  std::uint32_t chunk_count = 0;
};

// The bar that a pool prints of itself, one character for each hundredth of what it has taken.
struct PoolBar {
  std::uint64_t free = 0, longest = 0;  // hundredths that no chunk in use touches, and the longest row of them
};

// What the list of the bins adds up to: chunks by their size, those in use and those that are free.
struct DumpedBins {
  std::uint64_t chunks = 0, chunks_in_use = 0;
  ByteInterval bytes, in_use, requested, free;
  ByteInterval largest_free;
};

// "12 Chunks of size 1024 totalling 12.0KiB", of the summary of what is in use.
struct DumpedSize {
  std::uint64_t count = 0, size_bytes = 0;
};

struct PoolDump {
  std::string allocator;  // "GPU_0_bfc"; empty: its line is missing
  std::vector<DumpedChunk> chunks;
  std::vector<DumpedRegion> regions;
  std::vector<DumpedChunk> loose;       // of no region that a line names; settle() puts them into regions
  std::vector<std::string> ops = {""};  // operations and annotations, each once

  std::optional<ByteInterval> asked;        // the request that failed
  std::optional<std::uint64_t> rounded;     // as the pool looks for it
  std::string asked_by;                     // the operation
  std::optional<ByteInterval> limit;        // what the pool may take
  std::optional<ByteInterval> pool;         // what its regions add up to
  std::optional<ByteInterval> available;    // of the limit, what no region has taken
  std::optional<ByteInterval> next_region;  // what it would ask the driver for next
  std::optional<ByteInterval> in_use, peak_in_use, largest_free;
  std::optional<DumpedBins> bins;             // where all of the list was read
  std::vector<DumpedSize> sizes;              // of what is in use
  std::optional<ByteInterval> in_use_in_all;  // that the summary by size says it adds up to
  std::optional<ByteInterval> refused;        // a region that the driver did not give
  std::optional<ByteInterval> base_limit;     // what XLA says that it plans with
  std::optional<PoolBar> bar;
  std::uint64_t allocations = 0;  // how many requests the pool has served
  std::uint64_t form = 0;         // the year since when a header has these words; 0: there is none
  bool is_finished = false;       // it was read up to its last line
  bool is_mixed = false;          // with another of the same writer, line by line
  bool is_whole_by_form = false;  // a file that has all chunks or is refused

  ByteInterval unplaced;           // of regions without a single line of a chunk: nobody knows where they lay
  bool is_open = false;            // nothing tells whether lines are missing
  std::uint64_t unread_bytes = 0;  // in regions whose size is known, without a line that says what they are
  std::uint64_t odd_lines = 0;     // that could not be understood, or contradict what was read
  std::uint64_t repeated_lines = 0;
  std::size_t begin = 0, end = 0;  // where it stands in the text
  std::string writer;              // as its lines' prefixes name one: "[rank3]:"

  bool has_map() const { return !chunks.empty() || !loose.empty(); }
  // What the summary by size adds up to, where all of it was read.
  std::optional<std::uint64_t> in_use_by_sizes() const;
};

// The regions' chunks put in order, and what is missing in them counted; called once by each reader, when all of it is in.
void settle(PoolDump& dump);

}  // namespace faultline
