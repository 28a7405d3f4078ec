// The settings worth trying on any recording: those that change where an allocator places things, in the sizes people use. Each model has a table of its own (candidates.cpp);
// it serves `replay --search`, which tries all of them, and the rules, which try the best known of each kind and propose what a replay has shown to help.
#pragma once

#include <string>
#include <vector>

#include "models/replay.h"

namespace faultline {

// Each is a set of changes on top of the recording's own settings, which stay out of the list. Settings that the recording's framework
// does not know yet are left out. Nothing where no model knows the device's allocator.
std::vector<SettingChanges> sensible_settings(const Trace& trace, std::uint16_t device = 0);

// Those that a finding may propose, the likeliest first.
std::vector<SettingChanges> proposed_settings(const Trace& trace, std::uint16_t device);

// What the user does to have them: "Set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True before the program starts".
std::string instruction(const Trace& trace, std::uint16_t device, const SettingChanges& changes);

// As the user writes them in PYTORCH_CUDA_ALLOC_CONF: "expandable_segments:True,max_split_size_mb:128".
std::string written(const SettingChanges& changes);

}  // namespace faultline
