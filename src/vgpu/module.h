// Modules and libraries: a piece of device code, kept as it was loaded, and the kernels in it, each with its part of the code. The code itself is not run.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/elf/device_code.h"
#include "vgpu/context.h"

namespace faultline::vgpu {

struct Module;

// What a CUfunction and a CUkernel stand for.
struct Function {
  const KernelDescription& kernel;  // in the module's code
  Module* module = nullptr;
  CUfunction function = nullptr;
  CUkernel kernel_handle = nullptr;
};

struct Module {
  DeviceCode code;
  CUmodule handle = nullptr;
  CUlibrary library = nullptr;       // null for a module
  const Context* context = nullptr;  // null for a library
  std::vector<std::shared_ptr<Function>> functions;
};
using ModulePointer = std::shared_ptr<Module>;

ModulePointer load_code(const void* image, const Context* context);  // refuses what is no device code
ModulePointer load_code_file(const char* path, const Context* context);
ModulePointer require_module(CUmodule handle);
ModulePointer require_library(CUlibrary handle);
// programs pass a CUkernel where a CUfunction is asked for; both are found
std::shared_ptr<Function> require_function(CUfunction handle);
std::shared_ptr<Function> require_function(const Module& module, const char* name);  // refuses with not found
void unload_module(CUmodule handle);
void unload_library(CUlibrary handle);
void forget_modules_of(const Context& context);

}  // namespace faultline::vgpu
