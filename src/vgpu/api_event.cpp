#include "vgpu/api.h"
#include "vgpu/call.h"
#include "vgpu/capture.h"
#include "vgpu/context.h"
#include "vgpu/pool.h"

namespace faultline::vgpu {
namespace {

// The point to wait for; refuses an event of a capture, which happens in no stream.
EventPointPointer latest_of(Event& event) {
  const auto lock = order_lock();
  if (event.capture != nullptr) {
    event.capture->invalidated = true;
    refuse(CUDA_ERROR_CAPTURED_EVENT);
  }
  return event.latest;
}

}  // namespace

void api::cuEventRecordWithFlags(CUevent handle, CUstream stream, unsigned flags) {
  require((flags & ~unsigned{CU_EVENT_RECORD_EXTERNAL}) == 0);
  const EventPointer event = require_event(handle);
  const StreamPointer target = require_stream(stream);
  require(&event->context == &target->context, CUDA_ERROR_INVALID_HANDLE);
  record_event(*target, event, handle, (flags & CU_EVENT_RECORD_EXTERNAL) != 0);
}

void api::cuEventRecord(CUevent event, CUstream stream) { api::cuEventRecordWithFlags(event, stream, 0); }

void api::cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
  require(milliseconds != nullptr);
  const EventPointer first = require_event(start), second = require_event(end);
  require(((first->flags | second->flags) & CU_EVENT_DISABLE_TIMING) == 0, CUDA_ERROR_INVALID_HANDLE);
  const EventPointPointer from = latest_of(*first), to = latest_of(*second);
  require(from != nullptr && to != nullptr, CUDA_ERROR_INVALID_HANDLE);
  require(from->completion.done() && to->completion.done(), CUDA_ERROR_NOT_READY);
  *milliseconds = static_cast<float>(static_cast<double>(to->time_ns - from->time_ns) / 1e6);
}

void api::cuEventCreate(CUevent* event, unsigned flags) {
  require(event != nullptr);
  constexpr unsigned kKnown = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
  require((flags & ~kKnown) == 0);
  *event = create_event(*require_context(), flags);
}

void api::cuEventDestroy(CUevent event) { destroy_event(event); }

void api::cuEventQuery(CUevent handle) {
  const EventPointPointer point = latest_of(*require_event(handle));
  require(point == nullptr || point->completion.done(), CUDA_ERROR_NOT_READY);
}

void api::cuEventSynchronize(CUevent handle) {
  const EventPointer event = require_event(handle);
  if (const EventPointPointer point = latest_of(*event)) point->completion.wait();
  release_pool_memory_over_threshold(event->context.device);
}

void api::cuStreamWaitEvent(CUstream stream, CUevent handle, unsigned flags) {
  require((flags & ~unsigned{CU_EVENT_WAIT_EXTERNAL}) == 0);
  wait_for_event(require_stream(stream), require_event(handle), handle, (flags & CU_EVENT_WAIT_EXTERNAL) != 0);
}

}  // namespace faultline::vgpu
