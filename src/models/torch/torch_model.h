// PyTorch's native caching allocator as a model.
#pragma once

#include "models/model.h"

namespace faultline {

extern const Model kTorchModel;

}  // namespace faultline
