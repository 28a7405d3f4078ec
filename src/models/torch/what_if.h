// The what-if: the requests of a recording (or of a dry run without addresses) served by the model alone, under any settings and budget.
#pragma once

#include "models/replay.h"
#include "models/torch/proof.h"
#include "models/torch/recording.h"

namespace faultline {

ReplayResult replay_torch(const TorchRecording& recording, const RecordedTorchSettings& recorded,
                          const TorchSettings& settings, const TorchFindings& findings, const ReplayOptions& options);

}  // namespace faultline
