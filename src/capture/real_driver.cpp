#include "capture/real_driver.h"

#include <dlfcn.h>

#include <cstdlib>

#include "driver/find_driver.h"

namespace faultline::capture {
namespace {

struct RealDriver {
  std::string path;
  void* library = nullptr;
  OwnCalls own;

  RealDriver() {
    const char* named = std::getenv("FAULTLINE_DRIVER");
    path = named != nullptr && *named != '\0' ? named : driver::find_real_driver();
    if (path.empty()) return;
    library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return;
    find(own.get_proc_address, "cuGetProcAddress_v2");
    find(own.get_proc_address_11, "cuGetProcAddress");
    find(own.error_name, "cuGetErrorName");
    find(own.driver_version, "cuDriverGetVersion");
    find(own.device_count, "cuDeviceGetCount");
    find(own.device_name, "cuDeviceGetName");
    find(own.device_memory, "cuDeviceTotalMem_v2");
    find(own.current_device, "cuCtxGetDevice");
    find(own.memory_info, "cuMemGetInfo_v2");
    find(own.function_name, "cuFuncGetName");
    find(own.function_parameter, "cuFuncGetParamInfo");
    find(own.kernel_name, "cuKernelGetName");
    find(own.kernel_parameter, "cuKernelGetParamInfo");
    find(own.is_capturing, "cuStreamIsCapturing");
  }
  template <class Function>
  void find(Function& function, const char* name) {
    function = reinterpret_cast<Function>(::dlsym(library, name));
  }
};

const RealDriver& real() {
  static const RealDriver* driver = new RealDriver;  // outlives every thread that may still call
  return *driver;
}

}  // namespace

void* real_library() { return real().library; }
const std::string& real_library_path() { return real().path; }
const OwnCalls& own() { return real().own; }
std::optional<DeviceMemory> memory_of_current_device() {
  std::size_t free_bytes = 0, total_bytes = 0;
  if (own().memory_info == nullptr || own().memory_info(&free_bytes, &total_bytes) != CUDA_SUCCESS) return std::nullopt;
  return DeviceMemory{free_bytes, total_bytes};
}
void* real_symbol(const char* name) { return real().library == nullptr ? nullptr : ::dlsym(real().library, name); }

}  // namespace faultline::capture
