// Operations on their way into a stream: run by it, or, while it is being captured, kept as a node of a graph.
#pragma once

#include <memory>
#include <thread>
#include <vector>

#include "vgpu/graph.h"

namespace faultline::vgpu {

struct CaptureSequence {
  std::uint64_t id = 0;
  GraphPointer graph;
  std::size_t nodes_before = 0;  // that the graph had when the capture began
  const Stream* origin = nullptr;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  std::thread::id thread;
  bool invalidated = false;
  std::vector<std::weak_ptr<Stream>> streams;  // all that take part
  std::vector<CUgraphNode> told;               // what a program asked for last, which it may read until it asks again
};

// Null: it was captured. Refuses where a capture forbids it. Takes the order lock.
CompletionPointer submit(Stream& stream, Operation operation);
void record_event(Stream& stream, const EventPointer& event, CUevent handle, bool external);
void wait_for_event(const StreamPointer& stream, const EventPointer& event, CUevent handle, bool external);

// The order lock is held by the caller of these.
bool captured(const Stream& stream);
bool captured_into(const Graph& graph);
void require_not_captured(Stream& stream);  // refuses, and makes the capture invalid

void begin_capture(const StreamPointer& stream, CUstreamCaptureMode mode, GraphPointer graph,
                   std::vector<GraphNode*> needs);
GraphPointer end_capture(Stream& stream);
CUstreamCaptureStatus capture_status(const Stream& stream);

// Refuses a call that could disturb a capture somewhere (a memory allocation, say), as the thread's capture mode asks. Takes the order lock.
void require_no_capture_disturbed();
CUstreamCaptureMode exchange_capture_mode(CUstreamCaptureMode mode);

}  // namespace faultline::vgpu
