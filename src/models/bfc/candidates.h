// The settings of a BFC pool that are worth trying on a recording.
#pragma once

#include <string>
#include <vector>

#include "models/bfc/recording.h"
#include "models/replay.h"

namespace faultline {

// now: what was in force in the pool that most is asked of. A pool of the host has none of a GPU's settings.
std::vector<SettingChanges> bfc_settings_to_try(const BfcRecording& recording, const BfcSettings& now);
std::vector<SettingChanges> bfc_settings_to_propose(const BfcRecording& recording, const BfcSettings& now);
std::string bfc_instruction(const SettingChanges& changes);

}  // namespace faultline
