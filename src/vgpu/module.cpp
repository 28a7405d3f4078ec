#include "vgpu/module.h"

#include <fstream>
#include <iterator>

#include "vgpu/call.h"
#include "vgpu/handles.h"

namespace faultline::vgpu {
namespace {

Handles<CUmodule, Module>& modules() { return Handles<CUmodule, Module>::get(); }
Handles<CUlibrary, Module>& libraries() { return Handles<CUlibrary, Module>::get(); }
Handles<CUfunction, Function>& functions() { return Handles<CUfunction, Function>::get(); }

void unload(const ModulePointer& module, CUresult unknown) {
  require(module != nullptr, unknown);
  for (const auto& function : module->functions) functions().remove(function->function);
}

}  // namespace

ModulePointer load_code(const void* image, const Context* context) {
  require(image != nullptr);
  std::optional<DeviceCode> code = DeviceCode::read(image);
  require(code.has_value(), CUDA_ERROR_INVALID_IMAGE);
  auto module = std::make_shared<Module>(Module{.code = std::move(*code), .context = context, .functions = {}});
  for (const KernelDescription& kernel : module->code.kernels()) {
    auto function = std::make_shared<Function>(Function{.kernel = kernel, .module = module.get()});
    function->function = functions().insert(function);
    function->kernel_handle = reinterpret_cast<CUkernel>(function->function);
    module->functions.push_back(std::move(function));
  }
  // A library's code is a module to those who ask for it, too.
  module->handle = modules().insert(module);
  if (context == nullptr) module->library = libraries().insert(module);
  return module;
}

ModulePointer load_code_file(const char* path, const Context* context) {
  require(path != nullptr);
  std::ifstream file(path, std::ios::binary);
  require(file.good(), CUDA_ERROR_FILE_NOT_FOUND);
  std::string code((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  return load_code(code.c_str(), context);
}

ModulePointer require_module(CUmodule handle) { return modules().require(handle, CUDA_ERROR_INVALID_HANDLE); }

ModulePointer require_library(CUlibrary handle) { return libraries().require(handle, CUDA_ERROR_INVALID_HANDLE); }

std::shared_ptr<Function> require_function(CUfunction handle) {
  return functions().require(handle, CUDA_ERROR_INVALID_HANDLE);
}

std::shared_ptr<Function> require_function(const Module& module, const char* name) {
  require(name != nullptr);
  for (const auto& function : module.functions) {
    if (function->kernel.name == name) return function;
  }
  refuse(CUDA_ERROR_NOT_FOUND);
}

void unload_module(CUmodule handle) {
  const ModulePointer module = require_module(handle);
  require(module->library == nullptr, CUDA_ERROR_NOT_PERMITTED);
  unload(modules().remove(handle), CUDA_ERROR_INVALID_HANDLE);
}

void unload_library(CUlibrary handle) {
  const ModulePointer library = libraries().remove(handle);
  unload(library, CUDA_ERROR_INVALID_HANDLE);
  modules().remove(library->handle);
}

void forget_modules_of(const Context& context) {
  for (const ModulePointer& module :
       modules().remove_if([&](const Module& candidate) { return candidate.context == &context; })) {
    unload(module, CUDA_SUCCESS);
  }
}

}  // namespace faultline::vgpu
