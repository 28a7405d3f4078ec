// A model of an allocator, and the registry of them: a folder here and one line in replay.cpp. replay() asks them in order which one knows the
// trace's heaps on the chosen device.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/replay.h"

namespace faultline {

struct Model {
  std::string_view name;  // "torch-native"
  bool (*knows)(const Trace& trace, std::uint16_t device);
  Result<ReplayResult> (*replay)(const Trace& trace, const ReplayOptions& options);
  const std::vector<std::string_view>& (*setting_names)();  // what a what-if may change
  // Settings worth trying on a trace, its own left out; those that a finding may propose, the likeliest first.
  std::vector<SettingChanges> (*worth_trying)(const Trace& trace, std::uint16_t device);
  std::vector<SettingChanges> (*worth_proposing)(const Trace& trace, std::uint16_t device);
  std::string (*instruction)(
      const SettingChanges& changes);  // "Set PYTORCH_CUDA_ALLOC_CONF=… before the program starts"
};

std::span<const Model* const> all_models();

}  // namespace faultline
