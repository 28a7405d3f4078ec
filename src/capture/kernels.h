// What is known of a kernel by its handle: its name, and where its parameters lie. Asked of the driver once.
#pragma once

#include <cstdint>
#include <vector>

#include "capture/recorder.h"

namespace faultline::capture {

struct KernelParameter {
  std::uint32_t offset_bytes = 0;
  std::uint32_t size_bytes = 0;
};

struct Kernel {
  StringId name;
  std::vector<KernelParameter> parameters;
};

// `handle` may be a CUfunction or a CUkernel, as the driver allows. The kernel stays valid for the process's life.
const Kernel& kernel_of(ThreadRecorder& thread, CUfunction handle);
// Handles may be used again for other kernels from now on.
void forget_kernels();

}  // namespace faultline::capture
