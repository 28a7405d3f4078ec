// The proof of the BFC model: the requests of a recording in their order, with the recording's own regions; every address must come out as it was.
//
// The driver's answers (where a region lies, whether one was refused) are taken from the recording. How large a region is asked for is the model's to say. What
// a recording does not state is told by the first thing that shows it: growth by the first region, the limit by a region that is smaller than the rule asks for,
// garbage collection by a region that went back.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "models/bfc/recording.h"
#include "models/replay.h"

namespace faultline {

struct BfcFindings {
  struct Pool {
    BfcSettings settings;  // in force, as far as they can be told
    bool limit_is_known = false;
    // above it the pool would have grown where it failed; the largest limit that explains all failures
    std::optional<std::uint64_t> limit_at_most;
    std::optional<bool> collects;  // told by what happened
    std::uint64_t peak_reserved_bytes = 0;
    bool driver_refused = false;  // the limit left room, and yet no region came
  };
  std::vector<Pool> pools;
  std::optional<std::uint64_t> room_bytes;  // what the driver is known to have had for regions, where it refused one
};

struct BfcProofResult {
  ReplayResult replay;
  BfcFindings findings;
};

BfcProofResult prove_bfc(const BfcRecording& recording, std::vector<std::uint64_t>* held_bytes = nullptr);

}  // namespace faultline
