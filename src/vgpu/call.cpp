#include "vgpu/call.h"

#include <pthread.h>

#include <atomic>
#include <cstdlib>
#include <mutex>

namespace faultline::vgpu {
namespace {

thread_local driver::StreamKind zero = driver::StreamKind::kLegacy;
thread_local bool inside_host_function = false;
std::atomic<bool> is_initialized{false};
std::atomic<bool> is_forked_child{false};
std::atomic<bool> is_exiting{false};

}  // namespace

driver::StreamKind stream_zero() { return zero; }

HostFunctionScope::HostFunctionScope() { inside_host_function = true; }
HostFunctionScope::~HostFunctionScope() { inside_host_function = false; }

bool initialized() { return is_initialized.load(std::memory_order_acquire); }
bool forked_child() { return is_forked_child.load(std::memory_order_relaxed); }
bool exiting() { return is_exiting.load(std::memory_order_relaxed); }

void initialize() {
  static std::once_flag once;
  std::call_once(once, [] {
    pthread_atfork(nullptr, nullptr, [] { is_forked_child.store(true, std::memory_order_relaxed); });
    std::atexit([] { is_exiting.store(true, std::memory_order_relaxed); });
    is_initialized.store(true, std::memory_order_release);
  });
}

CUresult begin_call(driver::StreamKind stream, bool any_time) {
  zero = stream;
  if (any_time) return CUDA_SUCCESS;
  if (forked_child() || !initialized()) return CUDA_ERROR_NOT_INITIALIZED;
  if (exiting()) return CUDA_ERROR_DEINITIALIZED;  // streams have stopped: a wait would not end
  return inside_host_function ? CUDA_ERROR_NOT_PERMITTED : CUDA_SUCCESS;
}

}  // namespace faultline::vgpu
