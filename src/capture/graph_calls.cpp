// Graphs: what is captured into which, and when one is launched.
#include <atomic>

#include "capture/observed_calls.h"
#include "capture/real_driver.h"
#include "capture/recorder.h"

namespace faultline::capture {
namespace {

constexpr std::string_view kCapture = "capture";
std::atomic<int> captures_under_way{0};

void note_capture(ThreadRecorder& thread, const Call& call, EventKind kind, CUstream stream, std::uint64_t graph) {
  Event event = thread.stamp(kind);
  thread.recorder().set_stream(thread, event, stream, call.stream);
  event.extra = thread.recorder().string(thread, kCapture).value;
  event.address = graph;
  thread.append(event);
}

CUresult capture_begun(ThreadRecorder& thread, const Call& call, CUresult result, CUstream stream) {
  if (result == CUDA_SUCCESS) {
    captures_under_way.fetch_add(1);
    note_capture(thread, call, EventKind::kOpBegin, stream, 0);
  }
  return told(thread, call, result);
}

CUresult instantiated(ThreadRecorder& thread, const Call& call, CUresult result, CUgraphExec* executable, CUgraph graph) {
  if (result == CUDA_SUCCESS) thread.recorder().same_number(*executable, graph);
  return told(thread, call, result);
}

}  // namespace

bool capture_is_under_way() { return captures_under_way.load(std::memory_order_relaxed) > 0; }

void forget_captures_after_fork() { captures_under_way.store(0); }

void mark_captured(const Call& call, Event& event, CUstream stream) {
  if (!capture_is_under_way() || own().is_capturing == nullptr) return;
  if (stream == nullptr && call.stream == driver::StreamKind::kPerThread) stream = CU_STREAM_PER_THREAD;
  if (stream == nullptr || stream == CU_STREAM_LEGACY) return;  // cannot be captured
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  if (own().is_capturing(stream, &status) == CUDA_SUCCESS && status != CU_STREAM_CAPTURE_STATUS_NONE) event.set(kCaptured);
}

FAULTLINE_OBSERVER(cuStreamBeginCapture, CUstream, CUstreamCaptureMode)
(ThreadRecorder& thread, const Call& call, const Real<CUstream, CUstreamCaptureMode>& real, CUstream stream, CUstreamCaptureMode mode) {
  return capture_begun(thread, call, real(stream, mode), stream);
}
FAULTLINE_OBSERVER(cuStreamBeginCaptureToGraph, CUstream, CUgraph, const CUgraphNode*, const CUgraphEdgeData*, std::size_t, CUstreamCaptureMode)
(ThreadRecorder& thread, const Call& call, const Real<CUstream, CUgraph, const CUgraphNode*, const CUgraphEdgeData*, std::size_t, CUstreamCaptureMode>& real, CUstream stream,
 CUgraph graph, const CUgraphNode* nodes, const CUgraphEdgeData* edges, std::size_t count, CUstreamCaptureMode mode) {
  return capture_begun(thread, call, real(stream, graph, nodes, edges, count, mode), stream);
}
FAULTLINE_OBSERVER(cuStreamEndCapture, CUstream, CUgraph*)
(ThreadRecorder& thread, const Call& call, const Real<CUstream, CUgraph*>& real, CUstream stream, CUgraph* graph) {
  CUstreamCaptureStatus before = CU_STREAM_CAPTURE_STATUS_NONE, after = CU_STREAM_CAPTURE_STATUS_NONE;
  const auto ask = [&](CUstreamCaptureStatus& status) { if (own().is_capturing != nullptr) (void)own().is_capturing(stream, &status); };
  ask(before);
  const CUresult result = real(stream, graph);
  if (result != CUDA_SUCCESS) ask(after);
  // A capture that failed is over too, but not every failed end ends one.
  if (before != CU_STREAM_CAPTURE_STATUS_NONE && after == CU_STREAM_CAPTURE_STATUS_NONE) {
    int under_way = captures_under_way.load();
    while (under_way > 0 && !captures_under_way.compare_exchange_weak(under_way, under_way - 1)) {
    }
    // Work captured into a graph that the program already has is not handed out again: there may be no place for it.
    const bool has_graph = result == CUDA_SUCCESS && graph != nullptr && *graph != nullptr;
    note_capture(thread, call, EventKind::kOpEnd, stream, has_graph ? thread.recorder().number_of(*graph) : 0);
  }
  return told(thread, call, result);
}
FAULTLINE_OBSERVER(cuGraphInstantiate, CUgraphExec*, CUgraph, CUgraphNode*, char*, std::size_t)
(ThreadRecorder& thread, const Call& call, const Real<CUgraphExec*, CUgraph, CUgraphNode*, char*, std::size_t>& real, CUgraphExec* executable, CUgraph graph,
 CUgraphNode* node, char* log, std::size_t log_bytes) {
  return instantiated(thread, call, real(executable, graph, node, log, log_bytes), executable, graph);
}
FAULTLINE_OBSERVER(cuGraphInstantiateWithFlags, CUgraphExec*, CUgraph, unsigned long long)
(ThreadRecorder& thread, const Call& call, const Real<CUgraphExec*, CUgraph, unsigned long long>& real, CUgraphExec* executable, CUgraph graph, unsigned long long flags) {
  return instantiated(thread, call, real(executable, graph, flags), executable, graph);
}
FAULTLINE_OBSERVER(cuGraphInstantiateWithParams, CUgraphExec*, CUgraph, CUDA_GRAPH_INSTANTIATE_PARAMS*)
(ThreadRecorder& thread, const Call& call, const Real<CUgraphExec*, CUgraph, CUDA_GRAPH_INSTANTIATE_PARAMS*>& real, CUgraphExec* executable, CUgraph graph,
 CUDA_GRAPH_INSTANTIATE_PARAMS* parameters) {
  return instantiated(thread, call, real(executable, graph, parameters), executable, graph);
}
FAULTLINE_OBSERVER(cuGraphExecUpdate, CUgraphExec, CUgraph, CUgraphExecUpdateResultInfo*)
(ThreadRecorder& thread, const Call& call, const Real<CUgraphExec, CUgraph, CUgraphExecUpdateResultInfo*>& real, CUgraphExec executable, CUgraph graph,
 CUgraphExecUpdateResultInfo* info) {
  return instantiated(thread, call, real(executable, graph, info), &executable, graph);
}
FAULTLINE_OBSERVER(cuGraphExecUpdate, CUgraphExec, CUgraph, CUgraphNode*, CUgraphExecUpdateResult*)
(ThreadRecorder& thread, const Call& call, const Real<CUgraphExec, CUgraph, CUgraphNode*, CUgraphExecUpdateResult*>& real, CUgraphExec executable, CUgraph graph,
 CUgraphNode* node, CUgraphExecUpdateResult* info) {
  return instantiated(thread, call, real(executable, graph, node, info), &executable, graph);
}
FAULTLINE_OBSERVER(cuGraphLaunch, CUgraphExec, CUstream)
(ThreadRecorder& thread, const Call& call, const Real<CUgraphExec, CUstream>& real, CUgraphExec executable, CUstream stream) {
  Recorder& recorder = thread.recorder();
  Event event = thread.stamp(EventKind::kLaunch);
  recorder.set_stream(thread, event, stream, call.stream);
  const std::uint32_t graph = recorder.number_of(executable);
  Key key;
  key.add(graph);
  std::uint32_t launch = thread.launches().find(key);
  if (launch == KeyMap::kNone) {
    Launch of_graph;
    of_graph.graph = graph;
    launch = recorder.next_launch().value;
    (void)thread.writer().define_launch(LaunchId(launch), of_graph);
    thread.launches().insert(key, launch);
  }
  event.extra = launch;
  mark_captured(call, event, stream);
  const CUresult result = real(executable, stream);
  if (result != CUDA_SUCCESS) event.set(kFailed);
  thread.append(event);
  return told(thread, call, result);
}
FAULTLINE_OBSERVER(cuGraphExecDestroy, CUgraphExec)
(ThreadRecorder& thread, const Call& call, const Real<CUgraphExec>& real, CUgraphExec executable) {
  thread.recorder().forget(executable);
  return told(thread, call, real(executable));
}
FAULTLINE_OBSERVER(cuGraphDestroy, CUgraph)
(ThreadRecorder& thread, const Call& call, const Real<CUgraph>& real, CUgraph graph) {
  thread.recorder().forget(graph);
  return told(thread, call, real(graph));
}

}  // namespace faultline::capture
