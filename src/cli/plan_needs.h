// How much memory the requests of a dry run need, by replay: the smallest device that serves them all, other allocator settings, other GPUs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/gpus.h"
#include "models/replay.h"
#include "report/plan.h"
#include "trace/trace.h"

namespace faultline::cli {

// The most that was taken from the driver beside PyTorch's allocator at one time, the context apart.
std::uint64_t peak_outside_bytes(const Trace& trace);

// The fewest bytes in segments with which every request of the trace is served under these settings, to 2 MiB and never below the truth; nothing where
// the model cannot tell. peak_reserved_bytes is where to begin to look.
std::optional<std::uint64_t> least_segment_bytes(const Trace& trace, const SettingChanges& changes, std::uint64_t peak_reserved_bytes);

// The GPUs of the catalogue, smallest first, each with a replay's answer.
std::vector<PlanFit> fits_on_catalogue(const Trace& trace, std::uint64_t outside_bytes);

// The allocator settings that help, the best of those that fit, else the best of all; none where none saves anything.
struct SettingsSearch {
  std::uint64_t needed_bytes = 0;    // with the settings as they are
  std::uint64_t capacity_bytes = 0;
  std::uint64_t beside_bytes = 0;    // the context, and what others took
  std::uint64_t peak_reserved_bytes = 0;
};
std::vector<PlanChange> try_settings(const Trace& trace, const SettingsSearch& search);

}  // namespace faultline::cli
