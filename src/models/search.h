// The settings worth trying on any recording: those that change where a caching allocator places things, in the sizes people use. One table serves
// `replay --search`, which tries all of them, and the rules, which try the best known of each kind and propose what a replay has shown to help.
#pragma once

#include <string>
#include <vector>

#include "models/replay.h"

namespace faultline {

// Each is a set of changes on top of the recording's own settings, which stay out of the list. Settings that the recording's PyTorch
// does not know yet are left out.
std::vector<SettingChanges> sensible_settings(const Trace& trace);

// Those that a finding may propose, the likeliest first.
const std::vector<SettingChanges>& proposed_settings();

// As the user writes them in PYTORCH_CUDA_ALLOC_CONF: "expandable_segments:True,max_split_size_mb:128".
std::string written(const SettingChanges& changes);

}  // namespace faultline
