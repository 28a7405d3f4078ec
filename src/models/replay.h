// Replay: the requests of a trace, answered by a model of an allocator instead of by the allocator that was recorded.
//
// Three uses of one operation:
//   proof     settings as recorded, driver answers taken from the recording: every placement must equal the recorded one;
//   what-if   other settings or another device size: how much would have been reserved, would it have run out;
//   verdict   a trace without addresses (a dry run) gets its placements.
// The result can be had as numbers (fast) or as a new trace (explainable and viewable like any other).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/byte_interval.h"
#include "base/result.h"
#include "models/estimates.h"
#include "models/replay_curve.h"
#include "trace/trace.h"

namespace faultline {

// Allocator settings as the user writes them: name → value, both text ("expandable_segments" → "True"). The model parses and checks them.
using SettingChanges = std::vector<std::pair<std::string, std::string>>;

// A GPU that a replay is asked about: what an allocator that makes its pool by the device's size computes it from.
struct TargetGpu {
  std::uint64_t capacity_bytes = 0;
  int compute_major = 0;
};

struct ReplayOptions {
  SettingChanges changes;  // on top of the settings the trace carries
  // how much the driver can give this process in segments; nullopt: the recording's own answers
  std::optional<std::uint64_t> segment_budget_bytes;
  std::optional<TargetGpu> gpu;  // nullopt: the recording's own
  bool proof = false;            // compare with the recording and follow it where it differs
  std::uint16_t device = 0;
  bool want_trace = false;
  EstimateEnd estimates = EstimateEnd::kLikely;  // what-if: how large requests of unknown size are taken for
  // if given, [allocation id] receives the bytes the model set aside for it; sized by the caller
  std::vector<std::uint64_t>* held_bytes = nullptr;
  ReplayCurve* curve = nullptr;  // if given, receives what is reserved over time (what-if)
};

// Why and where a replay could not serve a request.
struct ReplayFailure {
  std::uint64_t event = 0;  // index of the Alloc (or AllocFailed) event in the input trace
  std::uint64_t requested_bytes = 0;
  std::uint64_t segment_bytes = 0;  // what the driver was asked for
  std::uint64_t allocated_bytes = 0;
  std::uint64_t reserved_bytes = 0;
};

struct Mismatch {
  std::uint64_t event = 0;
  std::string what;  // "alloc of 4194304 bytes: model 0x7f..., recording 0x7f..."
};

// Of a heap that grows no further than that: what is known of it.
struct PoolLimit {
  HeapId heap;
  ByteInterval bytes;
};

struct ReplayResult {
  std::string model;                 // "torch-native"
  std::string settings;              // canonical text of the settings in force
  std::uint64_t events = 0;          // events consumed
  std::uint64_t placements = 0;      // allocations placed (proof: compared)
  std::uint64_t exact = 0;           // proof: at the recorded address
  std::uint64_t segment_events = 0;  // proof: recorded segment alloc/free/map/unmap
  std::uint64_t segment_events_exact = 0;
  std::vector<Mismatch> mismatches;  // the first few
  // proof: segments whose private pool the recording does not name, told from what happened
  std::uint64_t inferred_private_segments = 0;
  std::uint64_t end_blocks = 0;        // proof: blocks in the recording's own end state …
  std::uint64_t end_blocks_exact = 0;  // … that the model has at the same place, of the same size, in the same state
  std::uint64_t peak_allocated_bytes = 0;
  std::uint64_t peak_reserved_bytes = 0;
  std::uint64_t end_allocated_bytes = 0;
  std::uint64_t end_reserved_bytes = 0;
  std::uint64_t segments_taken = 0;  // driver calls made for memory
  std::uint64_t segments_returned = 0;
  std::uint64_t cache_flushes = 0;      // times the whole cache was given back to serve one request
  std::vector<ReplayFailure> failures;  // out of memory in the replay, first few; the replay goes on without that block
  std::uint64_t failure_count = 0;
  std::uint64_t recorded_failures = 0;         // requests that failed in the recording …
  std::uint64_t recorded_failures_served = 0;  // … and that the replay could serve (what-if)
  std::vector<PoolLimit> pool_limits;          // proof
  std::optional<Trace> trace;                  // with want_trace
};

Result<ReplayResult> replay(const Trace& trace, const ReplayOptions& options);

// Parses "expandable_segments=True" / "expandable_segments:True,max_split_size_mb:128" into changes; unknown names are errors that list the known ones.
Result<SettingChanges> parse_setting_changes(std::string_view text);

}  // namespace faultline
