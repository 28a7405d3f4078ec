#pragma once

#include "models/model.h"

namespace faultline {

extern const Model kBfcModel;

}  // namespace faultline
