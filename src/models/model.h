// A model of an allocator, and the registry of them: a folder here and one line in replay.cpp. replay() asks them in order which one knows the
// trace's heaps on the chosen device.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "models/replay.h"

namespace faultline {

struct Model {
  std::string_view name;  // "torch-native"
  bool (*knows)(const Trace& trace, std::uint16_t device);
  Result<ReplayResult> (*replay)(const Trace& trace, const ReplayOptions& options);
  const std::vector<std::string_view>& (*setting_names)();  // what a what-if may change
};

std::span<const Model* const> all_models();

}  // namespace faultline
