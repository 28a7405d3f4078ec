// The settings worth trying on any recording: those that change where a caching allocator places things, in the sizes people use.
#pragma once

#include <vector>

#include "models/replay.h"

namespace faultline {

// Each is a set of changes on top of the recording's own settings, which stay out of the list. Settings that the recording's PyTorch
// does not know yet are left out.
std::vector<SettingChanges> sensible_settings(const Trace& trace);

}  // namespace faultline
