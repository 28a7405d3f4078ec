// One line of the map that a BFC pool prints, taken apart.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/byte_interval.h"

namespace faultline {

struct DumpLine {
  enum class Kind : std::uint8_t {
    kNone,
    kHeader,  // "Allocator (GPU_0_bfc) ran out of memory trying to allocate 2.00GiB (rounded to 2147483648)requested by op Mul"
    kName,  // "BFCAllocator dump for GPU_0_bfc"
    kBin,  // "Bin (256): Total Chunks: 7, Chunks in use: 4. …": number is the bin's size, counts are both, sizes are in use, requested of it, and all
    kRegion,       // "Next region of size 134217728"
    kChunk,        // "InUse at 7f20255fc040 of size 7340032 next 32"
    kSizes,        // "12 Chunks of size 1024 totalling 12.0KiB"
    kSum,          // "Sum Total of in-use chunks: 12.0KiB"
    kPool,         // sizes are what the pool has taken, its limit, what is left of that, and its next region
    kStatistics,   // "Stats:"
    kStatistic,    // "InUse:  90.00MiB", without a prefix
    kRefusedHost,  // "failed to alloc 268435456 bytes on host: CUDA_ERROR_OUT_OF_MEMORY"
    kRefused,  // "failed to allocate 8.41G (9029127168 bytes) from device: CUDA_ERROR_OUT_OF_MEMORY", "Failed to allocate device memory of 4.00GiB (4294967296 bytes): …"
    kBar,  // a hundred of "*", "x" and "_": number is how many are "_", size_bytes the longest row of them; none: "<allocator contains no memory>"
    kBaseLimit,  // "… exceeds the base limit (3003121664)", what XLA plans with
  } kind = Kind::kNone;
  std::optional<std::uint64_t> number;  // a chunk's address, a count, a rounded size
  std::uint64_t size_bytes = 0;
  bool in_use = false;
  bool is_afterwards = false;     // a header that stands behind its map
  std::uint64_t form = 0;         // of a header: since when it has these words
  std::string words, more_words;  // the pool's name, a chunk's operation; who asked
  std::array<std::optional<std::uint64_t>, 2> counts;
  std::array<std::optional<ByteInterval>, 4> sizes;
};

// Without colours and line end.
DumpLine read_dump_line(std::string_view line);

// Whether the words " of size " at `at` can be a dump's.
bool is_size_line(std::string_view text, std::size_t at);

// Who wrote the line, as far as its prefix tells.
struct DumpWriter {
  std::string tag;     // a rank or a process: "[rank3]:"
  std::string thread;  // "13205"
  friend bool operator==(const DumpWriter&, const DumpWriter&) = default;
};
DumpWriter writer_of(std::string_view line);

// When the line was written, in seconds of a clock that is the same for lines of one log; lines without a date count from midnight.
struct LineTime {
  std::int64_t day = 0, second = 0;
  bool has_day = false;
  std::int64_t seconds_from(const LineTime& other) const;  // never negative
};
std::optional<LineTime> time_of_line(std::string_view line);

}  // namespace faultline
