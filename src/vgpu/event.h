// Events: each record makes a new point in a stream; whoever waits, waits for the point that was the latest when it asked.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "vgpu/stream.h"

namespace faultline::vgpu {

struct EventPoint {
  Completion completion;
  std::int64_t time_ns = 0;  // valid once complete
};
using EventPointPointer = std::shared_ptr<EventPoint>;

inline CompletionPointer completion_of(const EventPointPointer& point) {
  return point == nullptr ? nullptr : CompletionPointer(point, &point->completion);
}
void reach(EventPoint& point);  // the stream is there: notes the time, tells who waits

struct Event {
  Context& context;
  const unsigned flags;
  // Under the order lock. Null: never recorded, and complete.
  EventPointPointer latest;
  // Recorded in a stream that was being captured: what a waiting stream then depends on.
  std::shared_ptr<CaptureSequence> capture;
  std::vector<GraphNode*> capture_nodes;
};
using EventPointer = std::shared_ptr<Event>;

CUevent create_event(Context& context, unsigned flags);
EventPointer require_event(CUevent handle);  // refuses what is none
void destroy_event(CUevent handle);
void forget_events_of(const Context& context);

}  // namespace faultline::vgpu
