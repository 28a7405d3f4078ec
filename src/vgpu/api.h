// The functions that the virtual driver may answer: one declaration for every signature in the list of driver functions, as overloads by base name
// (api::cuMemAlloc(CUdeviceptr*, size_t) stands behind the export cuMemAlloc_v2 and the variant "cuMemAlloc" of CUDA 3.2).
//
// They are declared weak, and the api_*.cpp files define those that are implemented, always as `void api::cuName(...)`: the compiler refuses a
// signature that is not in the list, the linker leaves the rest null, and exports.cpp answers those with CUDA_ERROR_NOT_SUPPORTED. So the list of
// driver/functions.h stays the only one. A function that returns has succeeded; every other code is refused (call.h). What stream 0 means to a call
// stands there too, not in the signature.
#pragma once

#include "driver/functions.h"

namespace faultline::vgpu::api {

#define FAULTLINE_DRIVER_EXPORT(symbol, base, stream, parameters, arguments) \
  [[gnu::weak, gnu::visibility("hidden")]] void base parameters;
#include "driver_functions.inc"
#undef FAULTLINE_DRIVER_EXPORT

}  // namespace faultline::vgpu::api
