// How much memory the requests of a dry run need: the smallest device that serves them all, found by replay. Every number of a plan that says "needs"
// is Needs::needed_bytes, of the run itself, of a run under a change, or of a replay under other allocator settings.
//
//     context_bytes    what CUDA and its libraries take before PyTorch's first byte
//   + outside_bytes    the most that was taken beside PyTorch's allocator at one time
//   + segment_bytes    the fewest bytes in segments with which every request is served, PyTorch giving its cache back where that helps
//   = needed_bytes     (at least segment_bytes / share, of a pool that takes only a share of the device); with reserved_bytes, what PyTorch takes where there is room, in the place of segment_bytes: taken_bytes
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "models/bfc/settings.h"
#include "models/replay.h"
#include "plan/dry_run.h"
#include "plan/plan.h"
#include "trace/trace.h"

namespace faultline {

// Of an interval: what is needed with every estimate at that end.
struct NeedsEnd {
  std::uint64_t segment_bytes = 0, allocated_bytes = 0, reserved_bytes = 0;
};

struct Needs {
  std::size_t slot = 0;  // of the device among the trace's
  std::uint64_t context_bytes = 0;
  std::uint64_t outside_bytes = 0;
  std::uint64_t reserved_bytes = 0;
  std::uint64_t segment_bytes = 0;
  std::uint64_t grows_bytes = 0;  // each round, where that was asked for
  std::uint64_t rounds = 0;       // that were seen
  bool grows_by_steps = false;
  std::uint64_t last_round = 0;  // of a loop that was cut short: about the last that is served
  bool fits =
      false;  // on the device as it is, and within a limit of the program's own; where something is estimated, also at its most
  bool is_estimated = false;
  NeedsEnd least, most;  // where something is estimated
  // Where TensorFlow's or JAX's pool is the allocator: segment_bytes is the smallest limit with which it serves all, and of a device it may take this share at most.
  std::optional<Framework> pool;
  double share = 1;
  bool preallocates = false;  // it takes its share at once, so that what comes beside it has the rest of the device
  std::uint64_t allocated_bytes = 0,
                caught = 0;  // of a pool: at the peak; requests that failed and the program got over
  std::uint64_t beside_bytes() const { return context_bytes + outside_bytes; }
  std::uint64_t needed_bytes() const { return needed_with(segment_bytes); }
  std::uint64_t least_needed_bytes() const { return is_estimated ? needed_with(least.segment_bytes) : needed_bytes(); }
  std::uint64_t most_needed_bytes() const { return is_estimated ? needed_with(most.segment_bytes) : needed_bytes(); }
  std::uint64_t needed_with(std::uint64_t segments) const;
  // Of a device of that size: what PyTorch's segments, or the pool, may take.
  std::uint64_t room_on(std::uint64_t capacity_bytes) const;
  std::uint64_t taken_bytes() const { return beside_bytes() + reserved_bytes; }
  // About the round in which a device of that size is full; 0: nothing grows.
  std::uint64_t full_at(std::uint64_t capacity_bytes) const {
    if (last_round != 0) return last_round;
    const std::uint64_t room_bytes = room_on(capacity_bytes);
    const std::uint64_t taken = is_estimated ? most.segment_bytes : segment_bytes;
    return grows_bytes == 0 ? 0 : rounds + (room_bytes > taken ? (room_bytes - taken) / grows_bytes : 0);
  }
};

// Is every request served with so many bytes in segments? Of PyTorch's allocator, under changed settings.
bool is_served(const Trace& trace, std::size_t slot, const SettingChanges& changes, std::uint64_t segment_bytes,
               EstimateEnd end);

// The fewest bytes in segments with which it is. reserved_bytes is where to begin to look.
std::optional<std::uint64_t> least_segment_bytes(const Trace& trace, std::size_t slot, const SettingChanges& changes,
                                                 std::uint64_t reserved_bytes, EstimateEnd end = EstimateEnd::kLikely);

// As it was run, to 2 MiB and never below the truth. Where the model cannot tell, what was reserved was enough. fits: the program got through on its
// device, which is then enough, whatever a replay takes for it.
// Of a program with several devices the one that decides: where it ran out of memory last, else the one that leaves the smallest share of itself.
Needs needs_of(const Trace& trace, bool fits);

// Of a rerun. The Error says why its numbers mean nothing: it ended by an error of its own, or was not run. Its trace is large, told everything, and removed.
// An error where the run did not come as far as the program as it is did (as_is), or could not be planned.
// many: batches that its steps are made of, of which the program as it is has one each.
Result<Needs> needs_of(const DryRunResult& rerun, const Plan& as_is, std::uint64_t many = 1);

// Of a rerun that fits: does it fit to its end? Memory that grows with it does where the run came to its end, or where its loop is known to end before the device is full.
inline bool fits_to_the_end(const Needs& needs, const ProcessSummary& run, const Plan& as_is) {
  if (!needs.fits || needs.grows_bytes == 0 || run.stopped.empty()) return needs.fits;
  const std::uint64_t steps = run.loop.steps != 0 ? run.loop.steps : as_is.growth.loop.steps;
  return needs.grows_by_steps && steps != 0 && needs.full_at(as_is.gpu->capacity_bytes) >= steps;
}

// For a run with a change: past the first optimizer steps, of which the second is the first with the optimizer's state, and the third the first
// with it and with gradients that are kept from batch to batch.
// Of several batches each, two steps show that.
std::uint64_t steps_of_trial(const Plan& as_is, std::uint64_t many = 1);

// How many batches a step accumulates makes no difference from two on: of more than these a run makes only so many a step.
inline constexpr std::uint64_t kMostBatchesTried = 8;

// With other allocator settings; nothing where the model cannot tell. Of what is likely: add_ends is for the one that is chosen.
std::optional<Needs> needs_under(const SettingChanges& changes, const Trace& trace, const Needs& as_run);

// Where requests are estimates: what is needed with all of them at their least and at their most, and whether it fits at their most.
void add_ends(const SettingChanges& changes, const Trace& trace, Needs& needs);

// The GPUs of the catalogue, smallest first.
std::vector<PlanFit> fits_on_catalogue(const Needs& needs);

}  // namespace faultline
