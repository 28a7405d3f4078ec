// The settings of the BFC allocator, which serves GPU memory in TensorFlow and in JAX, and how large a pool each of them makes.
//
// Nothing prints them all. A pool's limit is computed when the program starts, from what the device has (TensorFlow: what is free, less a reserve; JAX: a share of all);
// growth and garbage collection are told by what the pool did. A what-if changes single settings, by the names that a program or its environment uses.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/byte_interval.h"
#include "base/result.h"
#include "base/units.h"
#include "models/replay.h"
#include "trace/framework.h"

namespace faultline {

inline constexpr std::uint64_t kBfcUnit = 256;  // chunks are multiples of it, counted from their region's beginning
inline constexpr std::uint64_t kBfcFirstRegion = 2 * kMiB;
inline constexpr std::uint64_t kBfcLeftWhole = 128 * kMiB;
// More than any machine has; a pool whose limit nothing tells.
inline constexpr std::uint64_t kBfcNoLimit = std::uint64_t{1} << 50;
inline constexpr std::uint64_t kBfcLargestRequest = std::uint64_t{1} << 48;

constexpr std::uint64_t bfc_rounded(std::uint64_t bytes) { return (bytes + kBfcUnit - 1) / kBfcUnit * kBfcUnit; }

struct BfcSettings {
  std::uint64_t limit_bytes = kBfcNoLimit;
  bool growth = true;               // regions of 2 MiB and then doubling; else one region of the whole limit
  bool garbage_collection = false;  // regions without a live chunk may go back before a request fails
  // A chunk with less than this, and less than the request itself, beyond the request is handed out whole.
  std::uint64_t left_whole_below_bytes = kBfcLeftWhole;
  friend bool operator==(const BfcSettings&, const BfcSettings&) = default;
};

// What TensorFlow leaves to the driver and to libraries of what is free when it starts: by how much that is, and by the GPU's generation.
std::uint64_t tensorflow_reserve_bytes(std::uint64_t free_bytes, int compute_major);
// What is not the pool's on a GPU that nothing else uses: the context, and that reserve, which is none where the program itself limits the pool; of a tiny GPU half at most.
std::uint64_t tensorflow_context_bytes(const TargetGpu& gpu, const SettingChanges& changes = {});
// A share of the device's whole memory; JAX takes three quarters unless it is told.
std::uint64_t share_of(std::uint64_t capacity_bytes, double fraction);
inline constexpr double kJaxShare = 0.75;
// Of a GPU that nothing else uses, what is taken when the limit is computed: the CUDA context alone, before any library is loaded.
inline constexpr std::uint64_t kBfcContextAtStart = 106 * kMiB;

// What the changes of a what-if say about a pool on a device of that size; `gpu` is the device's figures, where they are known.
struct BfcTarget {
  Framework framework = Framework::kTensorFlow;  // or kJax
  std::optional<TargetGpu> gpu;
};
Status apply_changes(BfcSettings& settings, const BfcTarget& target, const SettingChanges& changes);

const std::vector<std::string_view>& bfc_setting_names();
// "TF_FORCE_GPU_ALLOW_GROWTH=true,memory_limit=256": as --set takes it; a limit that is no whole number of MiB is rounded, "memory_limit=13757.25".
std::string written(const BfcSettings& settings, Framework framework);

}  // namespace faultline
