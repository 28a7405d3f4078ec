#include "vgpu/event.h"

#include <chrono>

#include "vgpu/call.h"
#include "vgpu/handles.h"

namespace faultline::vgpu {
namespace {

Handles<CUevent, Event>& events() { return Handles<CUevent, Event>::get(); }

}  // namespace

void reach(EventPoint& point) {
  point.time_ns =
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
  point.completion.finish();
}

CUevent create_event(Context& context, unsigned flags) {
  return events().insert(std::make_shared<Event>(
      Event{.context = context, .flags = flags, .latest = {}, .capture = {}, .capture_nodes = {}}));
}

EventPointer require_event(CUevent handle) { return events().require(handle, CUDA_ERROR_INVALID_HANDLE); }

void destroy_event(CUevent handle) { require(events().remove(handle) != nullptr, CUDA_ERROR_INVALID_HANDLE); }

void forget_events_of(const Context& context) {
  events().remove_if([&](const Event& event) { return &event.context == &context; });
}

}  // namespace faultline::vgpu
