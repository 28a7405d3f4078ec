// The driver's start: devices, and how much of each was free when the first context stood.
#include "capture/recorder.h"

namespace faultline::capture {
namespace {

CUresult context_made(ObservedCall& call) {
  const CUresult result = call.real();
  if (result == CUDA_SUCCESS) call.thread.recorder().note_free_memory(call.thread);
  return call.told(result);
}

// A context takes its kernels with it. Forgotten before: another thread may be given a handle again at once.
CUresult context_ends(ObservedCall& call) {
  call.thread.recorder().kernels().forget();
  return call.made_and_told();
}

}  // namespace

CUresult observe::cuInit(ObservedCall& call, unsigned) {
  const CUresult result = call.real();
  if (result == CUDA_SUCCESS) call.thread.recorder().devices_found(call.thread);
  return call.told(result);
}
CUresult observe::cuCtxCreate(ObservedCall& call, CUcontext*, unsigned, CUdevice) { return context_made(call); }
CUresult observe::cuCtxCreate(ObservedCall& call, CUcontext*, CUexecAffinityParam*, int, unsigned, CUdevice) { return context_made(call); }
CUresult observe::cuCtxCreate(ObservedCall& call, CUcontext*, CUctxCreateParams*, unsigned, CUdevice) { return context_made(call); }
CUresult observe::cuCtxSetCurrent(ObservedCall& call, CUcontext context) { return context != nullptr ? context_made(call) : call.made_and_told(); }
CUresult observe::cuCtxDestroy(ObservedCall& call, CUcontext) { return context_ends(call); }
CUresult observe::cuDevicePrimaryCtxReset(ObservedCall& call, CUdevice) { return context_ends(call); }
CUresult observe::cuDevicePrimaryCtxRelease(ObservedCall& call, CUdevice) { return context_ends(call); }

}  // namespace faultline::capture
