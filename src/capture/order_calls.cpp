// Order: streams, events, and every way in which the host waits.
#include "capture/recorder.h"

namespace faultline::capture {
namespace {

// A wait that ended, or a question that found the work done.
CUresult waited(ObservedCall& call, SyncTarget target, CUstream stream = nullptr, CUevent event = nullptr) {
  const CUresult result = call.real();
  if (result != CUDA_SUCCESS) return call.told(result);
  Recorder& recorder = call.thread.recorder();
  Event sync = call.thread.stamp(EventKind::kSync);
  if (target == SyncTarget::kStream)
    recorder.set_stream(call.thread, sync, stream, call.stream);
  else
    sync.device = recorder.current_device();
  if (target == SyncTarget::kEvent) sync.size_bytes = recorder.number_of(event);
  sync.extra = static_cast<std::uint32_t>(target);
  call.thread.append(sync);
  return result;
}

CUresult stands_for(ObservedCall& call, EventKind kind, CUevent event, CUstream stream) {
  const CUresult result = call.real();
  if (result != CUDA_SUCCESS) return call.told(result);
  Event record = stamp_work(call, kind, stream);
  record.extra = call.thread.recorder().number_of(event);
  call.thread.append(record);
  return result;
}

CUresult stream_made(ObservedCall& call, CUstream* stream, unsigned flags) {
  const CUresult result = call.real();
  if (result == CUDA_SUCCESS)
    call.thread.recorder().stream_created(call.thread, *stream, (flags & CU_STREAM_NON_BLOCKING) == 0);
  return call.told(result);
}

}  // namespace

CUresult observe::cuStreamCreate(ObservedCall& call, CUstream* stream, unsigned flags) {
  return stream_made(call, stream, flags);
}
CUresult observe::cuStreamCreateWithPriority(ObservedCall& call, CUstream* stream, unsigned flags, int) {
  return stream_made(call, stream, flags);
}
CUresult observe::cuStreamDestroy(ObservedCall& call, CUstream stream) {
  call.thread.recorder().stream_destroyed(stream);  // before: another thread may be given the handle at once
  return call.made_and_told();
}
CUresult observe::cuEventDestroy(ObservedCall& call, CUevent event) {
  call.thread.recorder().forget(event);
  return call.made_and_told();
}
CUresult observe::cuEventRecord(ObservedCall& call, CUevent event, CUstream stream) {
  return stands_for(call, EventKind::kRecord, event, stream);
}
CUresult observe::cuEventRecordWithFlags(ObservedCall& call, CUevent event, CUstream stream, unsigned) {
  return stands_for(call, EventKind::kRecord, event, stream);
}
CUresult observe::cuStreamWaitEvent(ObservedCall& call, CUstream stream, CUevent event, unsigned) {
  return stands_for(call, EventKind::kWait, event, stream);
}
CUresult observe::cuEventSynchronize(ObservedCall& call, CUevent event) {
  return waited(call, SyncTarget::kEvent, nullptr, event);
}
CUresult observe::cuEventQuery(ObservedCall& call, CUevent event) {
  return waited(call, SyncTarget::kEvent, nullptr, event);
}
CUresult observe::cuStreamSynchronize(ObservedCall& call, CUstream stream) {
  return waited(call, SyncTarget::kStream, stream);
}
CUresult observe::cuStreamQuery(ObservedCall& call, CUstream stream) {
  return waited(call, SyncTarget::kStream, stream);
}
CUresult observe::cuCtxSynchronize(ObservedCall& call) { return waited(call, SyncTarget::kDevice); }
CUresult observe::cuCtxSynchronize(ObservedCall& call, CUcontext) { return waited(call, SyncTarget::kDevice); }

}  // namespace faultline::capture
