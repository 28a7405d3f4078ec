// Device code: what it holds can be asked for; launching it is refused.
#include <cstdio>
#include <mutex>

#include "vgpu/api.h"
#include "vgpu/call.h"
#include "vgpu/module.h"

namespace faultline::vgpu {
namespace {

CUresult refuse_launch(CUfunction handle) {
  const std::shared_ptr<Function> function = require_function(handle);
  static std::once_flag once;
  std::call_once(once, [&] { std::fprintf(stderr, "faultline: the virtual GPU does not run kernels yet: %s\n", function->kernel.name.c_str()); });
  return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult load(CUmodule* module, const void* image) {
  require(module != nullptr);
  *module = load_code(image, require_context().get())->handle;
  return CUDA_SUCCESS;
}

CUresult attribute_of(CUfunction_attribute attribute, int* value) {
  require(value != nullptr && attribute >= 0 && attribute < CU_FUNC_ATTRIBUTE_MAX);
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *value = 1024; break;
    case CU_FUNC_ATTRIBUTE_NUM_REGS: *value = 32; break;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION: *value = 80; break;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: *value = 48 << 10; break;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT: *value = -1; break;
    default: *value = 0; break;
  }
  return CUDA_SUCCESS;
}

CUresult parameter_of(const Function& function, std::size_t index, std::size_t* offset, std::size_t* size) {
  require(offset != nullptr && index < function.kernel.parameters.size());
  *offset = function.kernel.parameters[index].offset_bytes;
  if (size != nullptr) *size = function.kernel.parameters[index].size_bytes;
  return CUDA_SUCCESS;
}

std::shared_ptr<Function> require_kernel(CUkernel kernel) { return require_function(reinterpret_cast<CUfunction>(kernel)); }

template <class Handle, class Pick>
CUresult list(Handle* places, unsigned room, const Module& module, const Pick& pick) {
  require(places != nullptr || room == 0);
  for (std::size_t at = 0; at < room && at < module.functions.size(); ++at) places[at] = pick(*module.functions[at]);
  return CUDA_SUCCESS;
}

}  // namespace

CUresult api::cuModuleLoad(CUmodule* module, const char* path) { return answer(module, [&] { return load_code_file(path, require_context().get())->handle; }); }
CUresult api::cuModuleLoadData(CUmodule* module, const void* image) { return load(module, image); }
CUresult api::cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned, CUjit_option*, void**) { return load(module, image); }
CUresult api::cuModuleLoadFatBinary(CUmodule* module, const void* image) { return load(module, image); }

CUresult api::cuModuleUnload(CUmodule module) {
  unload_module(module);
  return CUDA_SUCCESS;
}

CUresult api::cuModuleGetLoadingMode(CUmoduleLoadingMode* mode) { return answer(mode, [&] { return CU_MODULE_EAGER_LOADING; }); }

CUresult api::cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  return answer(function, [&] { return require_function(*require_module(module), name)->function; });
}

CUresult api::cuModuleGetFunctionCount(unsigned* count, CUmodule module) {
  return answer(count, [&] { return static_cast<unsigned>(require_module(module)->functions.size()); });
}

CUresult api::cuModuleEnumerateFunctions(CUfunction* functions, unsigned room, CUmodule module) {
  return list(functions, room, *require_module(module), [](const Function& function) { return function.function; });
}

CUresult api::cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction function) {
  require_function(function);
  return attribute_of(attribute, value);
}
CUresult api::cuFuncSetAttribute(CUfunction function, CUfunction_attribute, int) {
  require_function(function);
  return CUDA_SUCCESS;
}
CUresult api::cuFuncSetCacheConfig(CUfunction function, CUfunc_cache) {
  require_function(function);
  return CUDA_SUCCESS;
}
CUresult api::cuFuncSetSharedMemConfig(CUfunction function, CUsharedconfig) {
  require_function(function);
  return CUDA_SUCCESS;
}

CUresult api::cuFuncGetModule(CUmodule* module, CUfunction function) { return answer(module, [&] { return require_function(function)->module->handle; }); }

CUresult api::cuFuncGetName(const char** name, CUfunction function) { return answer(name, [&] { return require_function(function)->kernel.name.c_str(); }); }

CUresult api::cuFuncGetParamInfo(CUfunction function, std::size_t index, std::size_t* offset, std::size_t* size) {
  return parameter_of(*require_function(function), index, offset, size);
}

CUresult api::cuFuncGetParamCount(CUfunction function, std::size_t* count) {
  return answer(count, [&] { return require_function(function)->kernel.parameters.size(); });
}

CUresult api::cuFuncIsLoaded(CUfunctionLoadingState* state, CUfunction function) {
  require(state != nullptr);
  require_function(function);
  *state = CU_FUNCTION_LOADING_STATE_LOADED;
  return CUDA_SUCCESS;
}

CUresult api::cuFuncLoad(CUfunction function) {
  require_function(function);
  return CUDA_SUCCESS;
}

CUresult api::cuLibraryLoadData(CUlibrary* library, const void* image, CUjit_option*, void**, unsigned, CUlibraryOption*, void**, unsigned) {
  return answer(library, [&] { return load_code(image, nullptr)->library; });
}

CUresult api::cuLibraryLoadFromFile(CUlibrary* library, const char* path, CUjit_option*, void**, unsigned, CUlibraryOption*, void**, unsigned) {
  return answer(library, [&] { return load_code_file(path, nullptr)->library; });
}

CUresult api::cuLibraryUnload(CUlibrary library) {
  unload_library(library);
  return CUDA_SUCCESS;
}

CUresult api::cuLibraryGetKernel(CUkernel* kernel, CUlibrary library, const char* name) {
  return answer(kernel, [&] { return require_function(*require_library(library), name)->kernel_handle; });
}

CUresult api::cuLibraryGetKernelCount(unsigned* count, CUlibrary library) {
  return answer(count, [&] { return static_cast<unsigned>(require_library(library)->functions.size()); });
}

CUresult api::cuLibraryEnumerateKernels(CUkernel* kernels, unsigned room, CUlibrary library) {
  return list(kernels, room, *require_library(library), [](const Function& function) { return function.kernel_handle; });
}

CUresult api::cuLibraryGetModule(CUmodule* module, CUlibrary library) { return answer(module, [&] { return require_library(library)->handle; }); }

CUresult api::cuKernelGetFunction(CUfunction* function, CUkernel kernel) { return answer(function, [&] { return require_kernel(kernel)->function; }); }

CUresult api::cuKernelGetLibrary(CUlibrary* library, CUkernel kernel) { return answer(library, [&] { return require_kernel(kernel)->module->library; }); }

CUresult api::cuKernelGetName(const char** name, CUkernel kernel) { return answer(name, [&] { return require_kernel(kernel)->kernel.name.c_str(); }); }

CUresult api::cuKernelGetParamInfo(CUkernel kernel, std::size_t index, std::size_t* offset, std::size_t* size) {
  return parameter_of(*require_kernel(kernel), index, offset, size);
}

CUresult api::cuKernelGetParamCount(CUkernel kernel, std::size_t* count) { return answer(count, [&] { return require_kernel(kernel)->kernel.parameters.size(); }); }

CUresult api::cuKernelGetAttribute(int* value, CUfunction_attribute attribute, CUkernel kernel, CUdevice) {
  require_kernel(kernel);
  return attribute_of(attribute, value);
}

CUresult api::cuKernelSetAttribute(CUfunction_attribute, int, CUkernel kernel, CUdevice) {
  require_kernel(kernel);
  return CUDA_SUCCESS;
}

CUresult api::cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache, CUdevice) {
  require_kernel(kernel);
  return CUDA_SUCCESS;
}

CUresult api::cuLaunchKernel(CUfunction function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void**, void**) {
  return refuse_launch(function);
}
CUresult api::cuLaunchKernelEx(const CUlaunchConfig*, CUfunction function, void**, void**) { return refuse_launch(function); }
CUresult api::cuLaunchCooperativeKernel(CUfunction function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void**) {
  return refuse_launch(function);
}

}  // namespace faultline::vgpu
