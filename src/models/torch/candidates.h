// The settings of PyTorch's allocator that are worth trying on a recording.
#pragma once

#include <string>
#include <vector>

#include "models/replay.h"

namespace faultline {

std::vector<SettingChanges> torch_settings_to_try(const Trace& trace, std::uint16_t device);
std::vector<SettingChanges> torch_settings_to_propose(const Trace& trace, std::uint16_t device);
std::string torch_instruction(const SettingChanges& changes);

}  // namespace faultline
