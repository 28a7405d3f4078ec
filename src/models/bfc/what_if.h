// The requests of a recording under other settings: how much the pools would have taken, and whether they would have run out.
#pragma once

#include "models/bfc/proof.h"
#include "models/replay.h"

namespace faultline {

// settings: of each pool of the recording.
ReplayResult replay_bfc(const BfcRecording& recording, const std::vector<BfcSettings>& settings,
                        const BfcFindings& findings, const ReplayOptions& options);

}  // namespace faultline
