// The settings of PyTorch's caching allocator, as PYTORCH_CUDA_ALLOC_CONF writes them, and what differs between its releases.
//
// A recording carries its settings twice: the raw text and, from 2.3 on, the values in force; the values win. What the text alone knows
// (segment size, rounding limit, memory fraction) is read from it. A what-if changes single settings on top. Everything here is checked with
// the limits PyTorch itself applies, so a text that passes is one that the program would accept.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "models/replay.h"
#include "models/torch/segment_sizes.h"

namespace faultline {

struct TorchVersion {
  int major = 2;
  int minor = 13;
  friend constexpr auto operator<=>(const TorchVersion&, const TorchVersion&) = default;
};
inline constexpr TorchVersion kNewestTorch{2, 13};
Result<TorchVersion> parse_torch_version(std::string_view text);  // "2.10", "2.10.1+cu128"

// What placement depends on besides the settings. docs/models.md names the change behind each.
struct TorchTraits {
  bool one_division_keeps_size = false;    // up to 2.3: roundup_power2_divisions of 1 leaves sizes as they are
  bool last_interval_included = false;     // up to 2.9: ">" in the list form overwrites the interval before it
  bool non_split_rounding_setting = true;  // from 2.6: max_non_split_rounding_mb exists; 20 MiB before
  bool large_segment_setting = true;       // from 2.11: large_segment_size_mb exists; 20 MiB before
  bool expandable_private_pools = true;    // from 2.5: private pools grow expandable segments too
  // up to 2.9: with expandable segments on, plain segments of private pools split as finely
  bool expandable_splits_everywhere = false;
  bool split_limit_may_equal_segment = true;  // from 2.10: max_split_size_mb of exactly the segment size is accepted
  static TorchTraits of(TorchVersion version);
};

inline constexpr std::uint64_t kUnlimitedBytes = std::numeric_limits<std::uint64_t>::max();
inline constexpr std::size_t kRoundupIntervals = 16;  // 1 MiB, 2 MiB, … 32 GiB and above

struct TorchSettings {
  std::uint64_t max_split_bytes = kUnlimitedBytes;
  std::uint64_t max_non_split_rounding_bytes = kTorchLargeSegment;
  std::uint64_t large_segment_bytes = kTorchLargeSegment;
  double gc_threshold = 0;     // 0: off
  double memory_fraction = 1;  // of the device's memory; 1: no limit
  bool expandable = false;
  bool native = true;  // false: backend:cudaMallocAsync, which has no model
  std::array<std::uint32_t, kRoundupIntervals> roundup_divisions{};

  // As PYTORCH_CUDA_ALLOC_CONF would write it; "default" when nothing differs from the defaults.
  std::string text() const;
  friend bool operator==(const TorchSettings&, const TorchSettings&) = default;
};

// The raw text of any release. Names the model does not know are returned in `ignored`, values out of range are errors.
Result<TorchSettings> parse_torch_settings(std::string_view text, const TorchTraits& traits,
                                           std::vector<std::string>* ignored = nullptr);

struct RecordedTorchSettings {
  TorchSettings settings;
  TorchVersion version;  // the newest that can have written the recording
  TorchVersion oldest;   // the oldest that can
  TorchTraits traits;
};
Result<RecordedTorchSettings> recorded_torch_settings(const std::map<std::string, std::string>& properties);

// Applies changes in order; an error names the setting and what it accepts.
Status apply_changes(TorchSettings& settings, const TorchTraits& traits, const SettingChanges& changes);

// The names a what-if may change.
const std::vector<std::string_view>& torch_setting_names();

}  // namespace faultline
