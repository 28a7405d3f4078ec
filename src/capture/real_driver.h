// The driver behind the capture library: the machine's libcuda.so.1, or the virtual one. Opened by its full path, once, never closed.
//
// FAULTLINE_DRIVER names it; without that the usual places are searched. own() are the driver's functions that the recorder itself calls: those that
// the driver does not have are null, and what needs them is left unrecorded. Nothing here needs memory of ours: without the driver the program could not go on.
#pragma once

#include <cstdint>
#include <string_view>

#include "driver/functions.h"

namespace faultline::capture {

struct OwnCalls {
  decltype(&::cuGetProcAddress_v2) get_proc_address = nullptr;
  decltype(&::cuGetProcAddress) get_proc_address_11 = nullptr;  // all that drivers of CUDA 11 have
  decltype(&::cuGetErrorName) error_name = nullptr;
  decltype(&::cuDriverGetVersion) driver_version = nullptr;
  decltype(&::cuDeviceGetCount) device_count = nullptr;
  decltype(&::cuDeviceGetName) device_name = nullptr;
  decltype(&::cuDeviceTotalMem_v2) device_memory = nullptr;
  decltype(&::cuCtxGetDevice) current_device = nullptr;
  decltype(&::cuMemGetInfo_v2) memory_info = nullptr;
  decltype(&::cuFuncGetName) function_name = nullptr;
  decltype(&::cuFuncGetParamInfo) function_parameter = nullptr;
  decltype(&::cuKernelGetName) kernel_name = nullptr;
  decltype(&::cuKernelGetParamInfo) kernel_parameter = nullptr;
  decltype(&::cuStreamIsCapturing) is_capturing = nullptr;
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
