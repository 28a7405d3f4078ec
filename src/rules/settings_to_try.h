// The settings a finding may propose, each only after a replay has shown that it helps.
#pragma once

#include <array>

#include "models/replay.h"

namespace faultline {

struct SettingToTry {
  SettingChanges changes;
  const char* written;  // as the user writes it in PYTORCH_CUDA_ALLOC_CONF
};

inline const std::array<SettingToTry, 3>& settings_to_try() {
  static const std::array<SettingToTry, 3> kSettings = {{{{{"expandable_segments", "True"}}, "expandable_segments:True"},
                                                         {{{"max_split_size_mb", "128"}}, "max_split_size_mb:128"},
                                                         {{{"roundup_power2_divisions", "8"}}, "roundup_power2_divisions:8"}}};
  return kSettings;
}

}  // namespace faultline
