// The driver's start: devices, and how much of each was free when the first context stood.
#include <atomic>
#include <string>

#include "capture/kernels.h"
#include "capture/observed_calls.h"
#include "capture/real_driver.h"
#include "capture/recorder.h"

namespace faultline::capture {
namespace {

std::atomic<std::uint64_t> noted{0};  // a bit per device

// Needs a current context; cuCtxCreate makes it so, a retained one becomes so later (cuCtxSetCurrent).
void note_free_memory(ThreadRecorder& thread) {
  CUdevice device = 0;
  if (own().current_device == nullptr || own().current_device(&device) != CUDA_SUCCESS || device < 0 || device >= 64) return;
  const std::uint64_t bit = std::uint64_t{1} << device;
  if ((noted.load(std::memory_order_relaxed) & bit) != 0) return;
  const std::optional<DeviceMemory> memory = memory_of_current_device();
  if (!memory || (noted.fetch_or(bit) & bit) != 0) return;  // a retained context may not be up yet
  thread.recorder().property(thread, "driver.free_at_start." + std::to_string(device), std::to_string(memory->free_bytes));
}

CUresult context_made(ThreadRecorder& thread, const Call& call, CUresult result) {
  if (result == CUDA_SUCCESS) note_free_memory(thread);
  return told(thread, call, result);
}

}  // namespace

void forget_devices_after_fork() { noted.store(0); }

FAULTLINE_OBSERVER(cuInit, unsigned)
(ThreadRecorder& thread, const Call& call, const Real<unsigned>& real, unsigned flags) {
  const CUresult result = real(flags);
  if (result == CUDA_SUCCESS) thread.recorder().devices_found(thread);
  return told(thread, call, result);
}
FAULTLINE_OBSERVER(cuCtxCreate, CUcontext*, unsigned, CUdevice)
(ThreadRecorder& thread, const Call& call, const Real<CUcontext*, unsigned, CUdevice>& real, CUcontext* context, unsigned flags, CUdevice device) {
  return context_made(thread, call, real(context, flags, device));
}
FAULTLINE_OBSERVER(cuCtxCreate, CUcontext*, CUexecAffinityParam*, int, unsigned, CUdevice)
(ThreadRecorder& thread, const Call& call, const Real<CUcontext*, CUexecAffinityParam*, int, unsigned, CUdevice>& real, CUcontext* context, CUexecAffinityParam* affinity,
 int count, unsigned flags, CUdevice device) {
  return context_made(thread, call, real(context, affinity, count, flags, device));
}
FAULTLINE_OBSERVER(cuCtxCreate, CUcontext*, CUctxCreateParams*, unsigned, CUdevice)
(ThreadRecorder& thread, const Call& call, const Real<CUcontext*, CUctxCreateParams*, unsigned, CUdevice>& real, CUcontext* context, CUctxCreateParams* parameters,
 unsigned flags, CUdevice device) {
  return context_made(thread, call, real(context, parameters, flags, device));
}
FAULTLINE_OBSERVER(cuCtxSetCurrent, CUcontext)
(ThreadRecorder& thread, const Call& call, const Real<CUcontext>& real, CUcontext context) {
  const CUresult result = real(context);
  if (result == CUDA_SUCCESS && context != nullptr) note_free_memory(thread);
  return told(thread, call, result);
}
// A context takes its kernels with it. Forgotten before: another thread may be given a handle again at once.
FAULTLINE_OBSERVER(cuCtxDestroy, CUcontext)
(ThreadRecorder& thread, const Call& call, const Real<CUcontext>& real, CUcontext context) {
  forget_kernels();
  return told(thread, call, real(context));
}
FAULTLINE_OBSERVER(cuDevicePrimaryCtxReset, CUdevice)
(ThreadRecorder& thread, const Call& call, const Real<CUdevice>& real, CUdevice device) {
  forget_kernels();
  return told(thread, call, real(device));
}
FAULTLINE_OBSERVER(cuDevicePrimaryCtxRelease, CUdevice)
(ThreadRecorder& thread, const Call& call, const Real<CUdevice>& real, CUdevice device) {
  forget_kernels();
  return told(thread, call, real(device));
}

}  // namespace faultline::capture
