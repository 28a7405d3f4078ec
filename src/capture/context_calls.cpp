// The driver's start: devices, and how much of each was free when the first context stood.
#include "capture/recorder.h"

namespace faultline::capture {
namespace {

CUresult context_made(ObservedCall& call) {
  const CUresult result = call.real();
  if (result == CUDA_SUCCESS) call.thread.recorder().note_free_memory(call.thread);
  return call.told(result);
}

// A context takes its kernels and its memory with it. Told before: another thread may be given a handle or an address again at once.
CUresult context_ends(ObservedCall& call, const void* context) {
  Recorder& recorder = call.thread.recorder();
  recorder.kernels().forget();
  const Recorder::EndedMemory ended = recorder.context_ends(call.thread, context);
  const CUresult result = call.real();
  if (result != CUDA_SUCCESS && result != CUDA_ERROR_DEINITIALIZED) recorder.context_stays(call.thread, ended);
  return call.told(result);
}

}  // namespace

CUresult observe::cuInit(ObservedCall& call, unsigned) {
  const CUresult result = call.real();
  call.thread.meet_python();
  if (result == CUDA_SUCCESS) call.thread.recorder().devices_found(call.thread);
  return call.told(result);
}
CUresult observe::cuCtxCreate(ObservedCall& call, CUcontext*, unsigned, CUdevice) { return context_made(call); }
CUresult observe::cuCtxCreate(ObservedCall& call, CUcontext*, CUexecAffinityParam*, int, unsigned, CUdevice) {
  return context_made(call);
}
CUresult observe::cuCtxCreate(ObservedCall& call, CUcontext*, CUctxCreateParams*, unsigned, CUdevice) {
  return context_made(call);
}
CUresult observe::cuCtxSetCurrent(ObservedCall& call, CUcontext context) {
  return context != nullptr ? context_made(call) : call.made_and_told();
}
CUresult observe::cuCtxDestroy(ObservedCall& call, CUcontext context) { return context_ends(call, context); }
CUresult observe::cuDevicePrimaryCtxRetain(ObservedCall& call, CUcontext* context, CUdevice device) {
  const CUresult result = call.real();
  if (result == CUDA_SUCCESS) call.thread.recorder().primary_context_is(device, *context);
  return call.told(result);
}
CUresult observe::cuDevicePrimaryCtxReset(ObservedCall& call, CUdevice device) {
  return context_ends(call, call.thread.recorder().primary_context(device));
}
// Only the last release ends it, and only the driver knows which that is.
CUresult observe::cuDevicePrimaryCtxRelease(ObservedCall& call, CUdevice device) {
  Recorder& recorder = call.thread.recorder();
  recorder.kernels().forget();
  const void* const context = recorder.primary_context(device);
  const CUresult result = call.real();
  unsigned flags = 0;
  int is_active = 1;
  if (result == CUDA_SUCCESS && own().primary_state != nullptr &&
      own().primary_state(device, &flags, &is_active) == CUDA_SUCCESS && is_active == 0)
    recorder.context_ends(call.thread, context);
  return call.told(result);
}

}  // namespace faultline::capture
