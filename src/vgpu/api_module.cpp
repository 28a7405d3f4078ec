// Device code: what it holds can be asked for; launching it is refused.
#include <cstdio>
#include <mutex>

#include "vgpu/api.h"
#include "vgpu/call.h"
#include "vgpu/module.h"

namespace faultline::vgpu {
namespace {

void refuse_launch(CUfunction handle) {
  const std::shared_ptr<Function> function = require_function(handle);
  static std::once_flag once;
  std::call_once(once, [&] {
    std::fprintf(stderr, "faultline: the virtual GPU does not run kernels yet: %s\n", function->kernel.name.c_str());
  });
  refuse(CUDA_ERROR_NOT_SUPPORTED);
}

void attribute_of(CUfunction_attribute attribute, int* value) {
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
}

void parameter_of(const Function& function, std::size_t index, std::size_t* offset, std::size_t* size) {
  require(offset != nullptr && index < function.kernel.parameters.size());
  *offset = function.kernel.parameters[index].offset_bytes;
  if (size != nullptr) *size = function.kernel.parameters[index].size_bytes;
}

std::shared_ptr<Function> require_kernel(CUkernel kernel) {
  return require_function(reinterpret_cast<CUfunction>(kernel));
}

template <class Handle, class Pick>
void list(Handle* places, unsigned room, const Module& module, const Pick& pick) {
  require(places != nullptr || room == 0);
  for (std::size_t at = 0; at < room && at < module.functions.size(); ++at) places[at] = pick(*module.functions[at]);
}

}  // namespace

void api::cuModuleLoad(CUmodule* module, const char* path) {
  answer(module, [&] { return load_code_file(path, require_context().get())->handle; });
}
void api::cuModuleLoadData(CUmodule* module, const void* image) {
  answer(module, [&] { return load_code(image, require_context().get())->handle; });
}
void api::cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned, CUjit_option*, void**) {
  api::cuModuleLoadData(module, image);
}
void api::cuModuleLoadFatBinary(CUmodule* module, const void* image) { api::cuModuleLoadData(module, image); }

void api::cuModuleUnload(CUmodule module) { unload_module(module); }

void api::cuModuleGetLoadingMode(CUmoduleLoadingMode* mode) {
  answer(mode, [&] { return CU_MODULE_EAGER_LOADING; });
}

void api::cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  answer(function, [&] { return require_function(*require_module(module), name)->function; });
}

void api::cuModuleGetFunctionCount(unsigned* count, CUmodule module) {
  answer(count, [&] { return static_cast<unsigned>(require_module(module)->functions.size()); });
}

void api::cuModuleEnumerateFunctions(CUfunction* functions, unsigned room, CUmodule module) {
  list(functions, room, *require_module(module), [](const Function& function) { return function.function; });
}

void api::cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction function) {
  require_function(function);
  attribute_of(attribute, value);
}
void api::cuFuncSetAttribute(CUfunction function, CUfunction_attribute, int) { require_function(function); }
void api::cuFuncSetCacheConfig(CUfunction function, CUfunc_cache) { require_function(function); }
void api::cuFuncSetSharedMemConfig(CUfunction function, CUsharedconfig) { require_function(function); }

void api::cuFuncGetModule(CUmodule* module, CUfunction function) {
  answer(module, [&] { return require_function(function)->module->handle; });
}

void api::cuFuncGetName(const char** name, CUfunction function) {
  answer(name, [&] { return require_function(function)->kernel.name.c_str(); });
}

void api::cuFuncGetParamInfo(CUfunction function, std::size_t index, std::size_t* offset, std::size_t* size) {
  parameter_of(*require_function(function), index, offset, size);
}

void api::cuFuncGetParamCount(CUfunction function, std::size_t* count) {
  answer(count, [&] { return require_function(function)->kernel.parameters.size(); });
}

void api::cuFuncIsLoaded(CUfunctionLoadingState* state, CUfunction function) {
  require(state != nullptr);
  require_function(function);
  *state = CU_FUNCTION_LOADING_STATE_LOADED;
}

void api::cuFuncLoad(CUfunction function) { require_function(function); }

void api::cuLibraryLoadData(CUlibrary* library, const void* image, CUjit_option*, void**, unsigned, CUlibraryOption*,
                            void**, unsigned) {
  answer(library, [&] { return load_code(image, nullptr)->library; });
}

void api::cuLibraryLoadFromFile(CUlibrary* library, const char* path, CUjit_option*, void**, unsigned, CUlibraryOption*,
                                void**, unsigned) {
  answer(library, [&] { return load_code_file(path, nullptr)->library; });
}

void api::cuLibraryUnload(CUlibrary library) { unload_library(library); }

void api::cuLibraryGetKernel(CUkernel* kernel, CUlibrary library, const char* name) {
  answer(kernel, [&] { return require_function(*require_library(library), name)->kernel_handle; });
}

void api::cuLibraryGetKernelCount(unsigned* count, CUlibrary library) {
  answer(count, [&] { return static_cast<unsigned>(require_library(library)->functions.size()); });
}

void api::cuLibraryEnumerateKernels(CUkernel* kernels, unsigned room, CUlibrary library) {
  list(kernels, room, *require_library(library), [](const Function& function) { return function.kernel_handle; });
}

void api::cuLibraryGetModule(CUmodule* module, CUlibrary library) {
  answer(module, [&] { return require_library(library)->handle; });
}

void api::cuKernelGetFunction(CUfunction* function, CUkernel kernel) {
  answer(function, [&] { return require_kernel(kernel)->function; });
}

void api::cuKernelGetLibrary(CUlibrary* library, CUkernel kernel) {
  answer(library, [&] { return require_kernel(kernel)->module->library; });
}

void api::cuKernelGetName(const char** name, CUkernel kernel) {
  answer(name, [&] { return require_kernel(kernel)->kernel.name.c_str(); });
}

void api::cuKernelGetParamInfo(CUkernel kernel, std::size_t index, std::size_t* offset, std::size_t* size) {
  parameter_of(*require_kernel(kernel), index, offset, size);
}

void api::cuKernelGetParamCount(CUkernel kernel, std::size_t* count) {
  answer(count, [&] { return require_kernel(kernel)->kernel.parameters.size(); });
}

void api::cuKernelGetAttribute(int* value, CUfunction_attribute attribute, CUkernel kernel, CUdevice) {
  require_kernel(kernel);
  attribute_of(attribute, value);
}

void api::cuKernelSetAttribute(CUfunction_attribute, int, CUkernel kernel, CUdevice) { require_kernel(kernel); }

void api::cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache, CUdevice) { require_kernel(kernel); }

void api::cuLaunchKernel(CUfunction function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                         CUstream, void**, void**) {
  refuse_launch(function);
}
void api::cuLaunchKernelEx(const CUlaunchConfig*, CUfunction function, void**, void**) { refuse_launch(function); }
void api::cuLaunchCooperativeKernel(CUfunction function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                                    unsigned, CUstream, void**) {
  refuse_launch(function);
}

}  // namespace faultline::vgpu
