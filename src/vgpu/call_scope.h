// What exports.cpp does first in every call.
#pragma once

#include "driver/functions.h"

namespace faultline::vgpu {

// CUDA_SUCCESS: go on. `any_time`: the function works before cuInit too.
CUresult begin_call(driver::StreamKind stream, bool any_time);

}  // namespace faultline::vgpu
