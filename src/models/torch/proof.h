// The proof: a recording replayed with its own settings, every placement and every driver call predicted and compared.
//
// The driver's answers (addresses, refusals) are taken from the recording, everything else is the model's. Driver calls come in runs between
// the torch events; a run is explained by what the allocator would do there: collect, give back what is enough, give back everything, take a
// segment, map. What cannot be explained is counted, the model is forced into the recorded state, and the proof goes on.
//
// Before 2.12 a recording does not say to which private pool a segment belonged once it was given back. Where a segment contradicts the
// default pool's rules it is taken to be a private one (inferred_private_segments counts them); it must then obey the rules in its own pool.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/replay.h"
#include "models/torch/recording.h"

namespace faultline {

// What a proof learns about a recording that its events do not say, and a what-if needs.
struct TorchFindings {
  struct Freeable {
    std::uint64_t event = 0;
    std::uint32_t arena = 0;
    bool on_its_own = false;  // the pool was emptied without the whole cache being so: it was deleted
  };
  std::vector<std::uint64_t> empty_cache_events;  // the program emptied its cache right before these events; ascending
  std::vector<Freeable> freeable;                 // from here on a private pool's memory may be given back
  // allocations that belong to another arena than their event says
  std::vector<std::pair<AllocationId, std::uint32_t>> moved;
  std::vector<bool> own_allocator;  // by arena
  std::uint32_t arena_count = 1;
  bool collected = false;                     // garbage was collected, so the program had set itself a limit
  std::optional<std::uint64_t> budget_bytes;  // what the driver can have had for segments, where a failure shows it
};

struct TorchProofResult {
  ReplayResult replay;
  TorchFindings findings;
};

// held_bytes, if given, receives the size of each allocation's block by id (see ReplayOptions).
TorchProofResult prove_torch(const TorchRecording& recording, const RecordedTorchSettings& recorded,
                             std::vector<std::uint64_t>* held_bytes = nullptr);

}  // namespace faultline
