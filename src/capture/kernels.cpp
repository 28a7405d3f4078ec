#include "capture/kernels.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "capture/real_driver.h"

namespace faultline::capture {
namespace {

constexpr std::size_t kMostParameters = 4096;
constexpr std::uint32_t kMostKernels = 1 << 16;  // of those that were ever met: modules that are loaded again and again have new ones
std::atomic<std::uint32_t> kernels_met{0};
const Kernel kUnknownKernel;

struct KnownKernels {
  std::mutex lock;
  std::unordered_map<CUfunction, const Kernel*> kernels;
};
KnownKernels*& known_kernels_place() {
  static KnownKernels* known = new KnownKernels;
  return known;
}
KnownKernels& known_kernels() { return *known_kernels_place(); }
std::atomic<std::uint32_t> epoch{1};

template <class Handle, class Ask>
void read_parameters(Kernel& kernel, Handle handle, Ask ask) {
  if (ask == nullptr) return;
  for (std::size_t index = 0; index < kMostParameters; ++index) {
    std::size_t offset = 0, size = 0;
    if (ask(handle, index, &offset, &size) != CUDA_SUCCESS) break;
    kernel.parameters.push_back({static_cast<std::uint32_t>(offset), static_cast<std::uint32_t>(size)});
  }
}

const Kernel* ask_driver(ThreadRecorder& thread, CUfunction handle) {
  if (kernels_met.load(std::memory_order_relaxed) >= kMostKernels) {
    thread.recorder().count("capture.kernels_left_out");
    return &kUnknownKernel;
  }
  kernels_met.fetch_add(1, std::memory_order_relaxed);
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

}  // namespace

const Kernel& kernel_of(ThreadRecorder& thread, CUfunction handle) {
  // A small direct-mapped memory per thread, so that a launch takes no lock.
  KernelCache& cache = thread.kernels();
  const std::uint32_t now = epoch.load(std::memory_order_acquire);
  KernelCache::Slot& slot = cache.slots[(reinterpret_cast<std::uintptr_t>(handle) * 0x9E3779B97F4A7C15ull) >> 54];
  if (slot.handle == handle && slot.epoch == now && slot.kernel != nullptr) return *slot.kernel;
  KnownKernels& known = known_kernels();
  const Kernel* kernel = nullptr;
  {
    const std::lock_guard hold(known.lock);
    const auto at = known.kernels.find(handle);
    if (at != known.kernels.end()) kernel = at->second;
  }
  if (kernel == nullptr) {
    kernel = ask_driver(thread, handle);
    const std::lock_guard hold(known.lock);
    known.kernels[handle] = kernel;
  }
  slot = {handle, kernel, now};
  return *kernel;
}

// The parent's names are not in the child's trace, and its lock may be held by a thread that is not there.
void forget_kernels_after_fork() {
  known_kernels_place() = new KnownKernels;
  kernels_met.store(0);
  epoch.fetch_add(1, std::memory_order_release);
}

void forget_kernels() {
  KnownKernels& known = known_kernels();
  const std::lock_guard hold(known.lock);
  known.kernels.clear();
  epoch.fetch_add(1, std::memory_order_release);
}

}  // namespace faultline::capture
