// Order: streams, events, and every way in which the host waits.
#include "capture/observed_calls.h"
#include "capture/recorder.h"

namespace faultline::capture {
namespace {

// A wait that ended, or a question that found the work done.
CUresult waited(ThreadRecorder& thread, const Call& call, CUresult result, SyncTarget target, CUstream stream, CUevent event) {
  if (result != CUDA_SUCCESS) return told(thread, call, result);
  Event sync = thread.stamp(EventKind::kSync);
  if (target == SyncTarget::kStream) thread.recorder().set_stream(thread, sync, stream, call.stream);
  else sync.device = thread.recorder().current_device();
  if (target == SyncTarget::kEvent) sync.size_bytes = thread.recorder().number_of(event);
  sync.extra = static_cast<std::uint32_t>(target);
  thread.append(sync);
  return result;
}

CUresult stands_for(ThreadRecorder& thread, const Call& call, CUresult result, EventKind kind, CUevent event, CUstream stream) {
  if (result != CUDA_SUCCESS) return told(thread, call, result);
  Event record = thread.stamp(kind);
  thread.recorder().set_stream(thread, record, stream, call.stream);
  record.extra = thread.recorder().number_of(event);
  mark_captured(call, record, stream);
  thread.append(record);
  return result;
}

CUresult stream_made(ThreadRecorder& thread, const Call& call, CUresult result, CUstream* stream, unsigned flags) {
  if (result != CUDA_SUCCESS) return told(thread, call, result);
  thread.recorder().stream_created(thread, *stream, (flags & CU_STREAM_NON_BLOCKING) == 0);
  return result;
}

}  // namespace

FAULTLINE_OBSERVER(cuStreamCreate, CUstream*, unsigned)
(ThreadRecorder& thread, const Call& call, const Real<CUstream*, unsigned>& real, CUstream* stream, unsigned flags) {
  return stream_made(thread, call, real(stream, flags), stream, flags);
}
FAULTLINE_OBSERVER(cuStreamCreateWithPriority, CUstream*, unsigned, int)
(ThreadRecorder& thread, const Call& call, const Real<CUstream*, unsigned, int>& real, CUstream* stream, unsigned flags, int priority) {
  return stream_made(thread, call, real(stream, flags, priority), stream, flags);
}
FAULTLINE_OBSERVER(cuStreamDestroy, CUstream)
(ThreadRecorder& thread, const Call& call, const Real<CUstream>& real, CUstream stream) {
  thread.recorder().stream_destroyed(stream);  // before: another thread may be given the handle at once
  return told(thread, call, real(stream));
}
FAULTLINE_OBSERVER(cuEventDestroy, CUevent)
(ThreadRecorder& thread, const Call& call, const Real<CUevent>& real, CUevent event) {
  thread.recorder().forget(event);
  return told(thread, call, real(event));
}
FAULTLINE_OBSERVER(cuEventRecord, CUevent, CUstream)
(ThreadRecorder& thread, const Call& call, const Real<CUevent, CUstream>& real, CUevent event, CUstream stream) {
  return stands_for(thread, call, real(event, stream), EventKind::kRecord, event, stream);
}
FAULTLINE_OBSERVER(cuEventRecordWithFlags, CUevent, CUstream, unsigned)
(ThreadRecorder& thread, const Call& call, const Real<CUevent, CUstream, unsigned>& real, CUevent event, CUstream stream, unsigned flags) {
  return stands_for(thread, call, real(event, stream, flags), EventKind::kRecord, event, stream);
}
FAULTLINE_OBSERVER(cuStreamWaitEvent, CUstream, CUevent, unsigned)
(ThreadRecorder& thread, const Call& call, const Real<CUstream, CUevent, unsigned>& real, CUstream stream, CUevent event, unsigned flags) {
  return stands_for(thread, call, real(stream, event, flags), EventKind::kWait, event, stream);
}
FAULTLINE_OBSERVER(cuEventSynchronize, CUevent)
(ThreadRecorder& thread, const Call& call, const Real<CUevent>& real, CUevent event) {
  return waited(thread, call, real(event), SyncTarget::kEvent, nullptr, event);
}
FAULTLINE_OBSERVER(cuEventQuery, CUevent)
(ThreadRecorder& thread, const Call& call, const Real<CUevent>& real, CUevent event) {
  return waited(thread, call, real(event), SyncTarget::kEvent, nullptr, event);
}
FAULTLINE_OBSERVER(cuStreamSynchronize, CUstream)
(ThreadRecorder& thread, const Call& call, const Real<CUstream>& real, CUstream stream) {
  return waited(thread, call, real(stream), SyncTarget::kStream, stream, nullptr);
}
FAULTLINE_OBSERVER(cuStreamQuery, CUstream)
(ThreadRecorder& thread, const Call& call, const Real<CUstream>& real, CUstream stream) {
  return waited(thread, call, real(stream), SyncTarget::kStream, stream, nullptr);
}
FAULTLINE_OBSERVER(cuCtxSynchronize)
(ThreadRecorder& thread, const Call& call, const Real<>& real) { return waited(thread, call, real(), SyncTarget::kDevice, nullptr, nullptr); }
FAULTLINE_OBSERVER(cuCtxSynchronize, CUcontext)
(ThreadRecorder& thread, const Call& call, const Real<CUcontext>& real, CUcontext context) {
  return waited(thread, call, real(context), SyncTarget::kDevice, nullptr, nullptr);
}

}  // namespace faultline::capture
