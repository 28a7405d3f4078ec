// The driver behind the capture library: the machine's libcuda.so.1, or the virtual one. Opened by its full path, once, never closed.
//
// FAULTLINE_DRIVER names it; without that the usual places are searched. own() are the driver's functions that the recorder itself calls: those that
// the driver does not have are null, and what needs them is left unrecorded. Nothing here needs memory of ours: without the driver the program could not go on.
#pragma once

#include <cstdint>
#include <string_view>

#include "driver/functions.h"

namespace faultline::capture {

#define FAULTLINE_OWN_CALLS(F)                                                    \
  F(get_proc_address, cuGetProcAddress_v2)                                        \
  F(get_proc_address_11, cuGetProcAddress) /* all that drivers of CUDA 11 have */ \
  F(error_name, cuGetErrorName)                                                   \
  F(driver_version, cuDriverGetVersion)                                           \
  F(device_count, cuDeviceGetCount)                                               \
  F(device_name, cuDeviceGetName)                                                 \
  F(device_memory, cuDeviceTotalMem_v2)                                           \
  F(current_device, cuCtxGetDevice)                                               \
  F(current_context, cuCtxGetCurrent)                                             \
  F(primary_state, cuDevicePrimaryCtxGetState)                                    \
  F(memory_info, cuMemGetInfo_v2)                                                 \
  F(function_name, cuFuncGetName)                                                 \
  F(function_parameter, cuFuncGetParamInfo)                                       \
  F(kernel_name, cuKernelGetName)                                                 \
  F(kernel_parameter, cuKernelGetParamInfo)                                       \
  F(is_capturing, cuStreamIsCapturing)

struct OwnCalls {
#define FAULTLINE_MEMBER(name, symbol) decltype(&::symbol) name = nullptr;
  FAULTLINE_OWN_CALLS(FAULTLINE_MEMBER)
#undef FAULTLINE_MEMBER
};

// Null where there is no driver.
void* real_library();
std::string_view real_library_path();
const OwnCalls& own();
struct DeviceMemory {
  std::uint64_t free_bytes = 0;
  std::uint64_t total_bytes = 0;
};
// A symbol of the real library; null where it has none of this name.
void* real_symbol(const char* name);

}  // namespace faultline::capture
