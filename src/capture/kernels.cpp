#include "capture/kernels.h"

#include <memory>

#include "capture/real_driver.h"
#include "capture/recorder.h"

namespace faultline::capture {
namespace {

constexpr std::size_t kMostParameters = 4096;
// of those that were ever met: modules that are loaded again and again have new ones
constexpr std::uint32_t kMostKernels = 1 << 16;
const Kernel kUnknownKernel;

template <class Handle, class Ask>
void read_parameters(Kernel& kernel, Handle handle, Ask ask) {
  if (ask == nullptr) return;
  for (std::size_t index = 0; index < kMostParameters; ++index) {
    std::size_t offset = 0, size = 0;
    if (ask(handle, index, &offset, &size) != CUDA_SUCCESS) break;
    kernel.parameters.push_back({static_cast<std::uint32_t>(offset), static_cast<std::uint32_t>(size)});
  }
}

}  // namespace

const Kernel* Kernels::ask_driver(ThreadRecorder& thread, CUfunction handle) {
  if (met_.load(std::memory_order_relaxed) >= kMostKernels) {
    thread.recorder().count("capture.kernels_left_out");
    return &kUnknownKernel;
  }
  met_.fetch_add(1, std::memory_order_relaxed);
  auto kernel = std::make_unique<Kernel>();
  const char* name = nullptr;
  // The CUDA runtime launches by CUkernel, driver programs by CUfunction; each is an invalid handle to the other's function, which is how they are told apart.
  if (const auto as_kernel = reinterpret_cast<CUkernel>(handle);
      own().kernel_name != nullptr && own().kernel_name(&name, as_kernel) == CUDA_SUCCESS && name != nullptr) {
    read_parameters(*kernel, as_kernel, own().kernel_parameter);
  } else if (own().function_name != nullptr && own().function_name(&name, handle) == CUDA_SUCCESS && name != nullptr) {
    read_parameters(*kernel, handle, own().function_parameter);
  }
  kernel->name = thread.recorder().string(thread, name != nullptr ? name : "");
  return kernel.release();
}

const Kernel& Kernels::of(ThreadRecorder& thread, CUfunction handle) {
  const std::uint32_t now = epoch_.load(std::memory_order_acquire);
  KernelCache::Slot& slot =
      thread.kernels().slots[(reinterpret_cast<std::uintptr_t>(handle) * 0x9E3779B97F4A7C15ull) >> 54];
  if (slot.handle == handle && slot.epoch == now && slot.kernel != nullptr) return *slot.kernel;
  const Kernel* kernel = nullptr;
  {
    const std::lock_guard hold(lock_);
    const auto at = known_.find(handle);
    if (at != known_.end()) kernel = at->second;
  }
  if (kernel == nullptr) {
    kernel = ask_driver(thread, handle);
    const std::lock_guard hold(lock_);
    known_[handle] = kernel;
  }
  slot = {handle, kernel, now};
  return *kernel;
}

void Kernels::forget() {
  const std::lock_guard hold(lock_);
  known_.clear();
  epoch_.fetch_add(1, std::memory_order_release);
}

}  // namespace faultline::capture
