// Why a request for GPU memory failed: one decision for snapshots, for requests to the driver, and for the numbers of a message.
//
// Everything is an interval of bytes (an exact number has width 0), and what is not known is left out. A cause is called proved only where its inequality holds for
// every value inside the intervals. The first of these that holds decides; R is the block that was needed, S what the driver was asked for to serve it:
//   contradiction     live > reserved, a part > the whole: the numbers tell nothing
//   too large         R > capacity, or more than any device has
//   lent              reserved > capacity: exhausted where live + R > capacity, else none
//   the whole need    of a dry run: what is in use at the fullest + what is beside PyTorch > capacity: exhausted
//   idle cache        whole free segments ≥ S, more than lies in pieces; for a request that went straight to the driver: with the free bytes ≥ S
//   pieces            idle ≥ R, where the picture of the memory is known and idle is waste: a twentieth of what is reserved, or the whole need fits without it
//   the limit         reserved + S > allowed and free ≥ S; or the device had S + 256 MiB free and only a limit that the input would not state can have refused.
//                     If live + R is within the limit and idle is waste, the idle pieces are the cause, else the limit. Where free < S raising it would not help: not the limit
//   held elsewhere    free < S + 256 MiB, and half of the device or more is neither free nor the allocator's: as for "others" below
//   room left         free ≥ S all the same: no cause can be told; S > free ≥ R: the rounding to segments, none either
//   others            free + what other processes hold ≥ S; what is held outside the allocator beyond a context's usual room likewise
//   pieces            free + idle ≥ R, idle is waste
//   private pools     free + idle + what lies in the pools of CUDA graphs ≥ R
//   exhausted         free + idle + pools < R: live + R + what others hold > capacity, whatever the allocator does
//   in effect full    else, where idle is no waste: none
// Of a pool that has a limit of its own and keeps what it has taken (TensorFlow, JAX) the limit stands for the device, and these decide instead (pool_cause.cpp); left: of the limit, what no region has taken:
//   too large         R > limit: exhausted
//   refused           left ≥ R, and yet no region came: the driver had no room, so something outside the pool held it
//   pieces            free in the pool ≥ R > the largest piece: fragmented; so is free + left ≥ R where neither alone suffices (what regions cost)
//   slack             free + left < R ≤ free + left + what lies unasked for in chunks that were not split (more than the rounding to 256 bytes): fragmented
//   in effect full    pieces, regions or slack of less than a twentieth of the pool: none
//   exhausted         free + left (+ slack) < R
// So "exhausted" is never said where live + R + the rest ≤ capacity, "fragmented" never where R would not fit without any waste, "own-limit" never where the device had no room either.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/byte_interval.h"
#include "base/open_unit.h"
#include "base/units.h"
#include "facts/outside.h"
#include "rules/finding.h"
#include "sources/pool_names.h"
#include "sources/statements.h"
#include "trace/framework.h"

namespace faultline {

inline constexpr std::uint64_t kExabyte = std::uint64_t{1} << 60;  // from here on a size has gone wrong

// As it was given: the middle of what a rounded number stands for is that number, unless that was 0.00, or has a unit that is left open.
inline std::string shown(ByteInterval bytes) {
  if (bytes.min == 0 && bytes.max != 0) return "less than " + format_bytes(bytes.max + 1);
  if (const auto open = open_unit_words(bytes.min, bytes.max)) return *open;
  return bytes.min >= kExabyte ? std::string("more than an exabyte") : format_bytes(bytes.middle());
}
inline std::string asked_for(ByteInterval bytes) {
  return bytes.min >= kExabyte              ? "More than an exabyte was requested"
         : bytes.min == 0 && bytes.max != 0 ? "L" + shown(bytes).substr(1) + " was requested"
                                            : shown(bytes) + " was requested";
}

// a device refuses its last pages; beyond this a refusal was not for want of room
inline constexpr std::uint64_t kDriverMarginBytes = 256 * kMiB;

// A pool that has a limit and keeps what it has taken.
struct PoolShortage {
  std::optional<ByteInterval> limit;       // the most that it may take
  std::optional<ByteInterval> left;        // of that, what no region has taken
  std::optional<ByteInterval> slack;       // of the live, what chunks have beyond what was asked for
  std::optional<ByteInterval> refused;     // a region that the driver is known not to have given
  std::optional<ByteInterval> base_limit;  // what XLA says that it plans with: the limit, or four fifths of the device
  std::optional<DumpedPool::Bar> bar;      // where the map is not in the text
  std::uint64_t region_count = 0;          // what it has taken comes in so many pieces, which are never joined
  std::string name;                        // "GPU_0_bfc"
  std::string words;                       // "TensorFlow's pool GPU_0_bfc"
  PoolMemory memory = PoolMemory::kGpu;    // that it serves
  bool has_map = false;                    // it is known where its chunks lie
  bool knows_request = true;               // how much was asked for
};

struct Shortage {
  ByteInterval requested, segment;  // R and S
  bool from_driver = false;         // the request went past the framework's allocator
  bool states_limits = false;       // the input would say so if the program had set itself a limit
  std::optional<ByteInterval> live, reserved, free, capacity;
  std::optional<ByteInterval> idle;            // reserved, not in use, and not in the pools of graphs
  std::optional<ByteInterval> graph_pool;      // idle in the private pools of CUDA graphs
  std::optional<ByteInterval> returnable;      // of the idle, in whole segments
  std::optional<ByteInterval> largest_piece;   // of the idle; known where the picture of the memory is
  std::optional<ByteInterval> allowed;         // the program's own limit
  std::optional<ByteInterval> allowed_so_far;  // what such a limit, if there is one, has let through
  std::optional<ByteInterval> outside;         // of this process, beside the allocator
  std::optional<ByteInterval> others;          // other processes, as listed
  std::optional<ByteInterval> whole_live;      // in use at the fullest, of a dry run that went on past the failure
  std::optional<ByteInterval> before_start;    // taken of the device before the program asked for anything
  bool sees_own_requests = false;  // every request of this process is known: what is unexplained is not its own
  ByteInterval other_streams;      // of the idle, in segments of other streams
  std::vector<std::string> other_pids;
  std::string doubt;  // why these may not be others: ", if …"; they are then likely, not proved
  std::optional<PoolShortage> pool;
  std::string holder{words_of(Framework::kPyTorch)};
  std::string device = "the device";
};

enum class Story : std::uint8_t {
  kAbsurd,
  kContradiction,
  kTooLarge,
  kLentMemory,
  kLentRoom,
  kWholeNeed,
  kIdleCache,
  kPieces,
  kPiecesUnderLimit,
  kLimit,
  kLimitAndFull,
  kDriverLimit,
  kJustAbove,
  kRounding,
  kRoomLeft,
  kFreeUnknown,
  kOthers,
  kBeforeStart,
  kUnseen,
  kOutside,
  kUnexplained,
  kGraphPool,
  kFull,
  kAsGoodAsFull,
  kOpen,
  // of a pool
  kPoolTooLarge,
  kPoolFull,
  kPoolSlack,
  kPoolAsGoodAsFull,
  kPoolPieces,
  kPoolRegions,
  kPoolRefused,
  kPoolRoom,
  kPoolSizeUnknown,
  kPoolOpen,
};

struct CauseVerdict {
  Story story = Story::kOpen;
  Confidence confidence = Confidence::kHint;
  std::string why;         // continues "N was requested: …"
  std::string inequality;  // in numbers that hold: "1.00 GiB free + 3.00 GiB idle < 4.00 GiB requested"; may be empty
  const char* cause() const;  // "exhausted", …; empty: none can be told
};

CauseVerdict cause_of(const Shortage& shortage);

}  // namespace faultline
