// Graphs: what is captured into which, and when one is launched.
#include "capture/recorder.h"

namespace faultline::capture {
namespace {

constexpr std::string_view kCapture = "capture";

void note_capture(ObservedCall& call, EventKind kind, CUstream stream, std::uint64_t graph) {
  Recorder& recorder = call.thread.recorder();
  Event event = call.thread.stamp(kind);
  recorder.set_stream(call.thread, event, stream, call.stream);
  event.extra = recorder.string(call.thread, kCapture).value;
  event.address = graph;
  call.thread.append(event);
}

CUresult capture_begins(ObservedCall& call, CUstream stream) {
  const CUresult result = call.real();
  if (result == CUDA_SUCCESS) {
    call.thread.recorder().capture_began();
    note_capture(call, EventKind::kOpBegin, stream, 0);
  }
  return call.told(result);
}

CUresult instantiated(ObservedCall& call, const CUgraphExec* executable, CUgraph graph) {
  const CUresult result = call.real();
  if (result == CUDA_SUCCESS) call.thread.recorder().same_number(*executable, graph);
  return call.told(result);
}

CUresult forgotten(ObservedCall& call, const void* handle) {
  call.thread.recorder().forget(handle);
  return call.made_and_told();
}

}  // namespace

CUresult observe::cuStreamBeginCapture(ObservedCall& call, CUstream stream) { return capture_begins(call, stream); }
CUresult observe::cuStreamBeginCapture(ObservedCall& call, CUstream stream, CUstreamCaptureMode) {
  return capture_begins(call, stream);
}
CUresult observe::cuStreamBeginCaptureToGraph(ObservedCall& call, CUstream stream, CUgraph, const CUgraphNode*,
                                              const CUgraphEdgeData*, std::size_t, CUstreamCaptureMode) {
  return capture_begins(call, stream);
}
CUresult observe::cuStreamEndCapture(ObservedCall& call, CUstream stream, CUgraph* graph) {
  CUstreamCaptureStatus before = CU_STREAM_CAPTURE_STATUS_NONE, after = CU_STREAM_CAPTURE_STATUS_NONE;
  const auto ask = [&](CUstreamCaptureStatus& status) {
    if (own().is_capturing != nullptr) (void)own().is_capturing(stream, &status);
  };
  ask(before);
  const CUresult result = call.real();
  if (result != CUDA_SUCCESS) ask(after);
  // A capture that failed is over too, but not every failed end ends one.
  if (before != CU_STREAM_CAPTURE_STATUS_NONE && after == CU_STREAM_CAPTURE_STATUS_NONE) {
    Recorder& recorder = call.thread.recorder();
    recorder.capture_ended();
    // Work captured into a graph that the program already has is not handed out again: there may be no place for it.
    const bool has_graph = result == CUDA_SUCCESS && graph != nullptr && *graph != nullptr;
    note_capture(call, EventKind::kOpEnd, stream, has_graph ? recorder.number_of(*graph) : 0);
  }
  return call.told(result);
}
CUresult observe::cuGraphInstantiate(ObservedCall& call, CUgraphExec* executable, CUgraph graph, CUgraphNode*, char*,
                                     std::size_t) {
  return instantiated(call, executable, graph);
}
CUresult observe::cuGraphInstantiateWithFlags(ObservedCall& call, CUgraphExec* executable, CUgraph graph,
                                              unsigned long long) {
  return instantiated(call, executable, graph);
}
CUresult observe::cuGraphInstantiateWithParams(ObservedCall& call, CUgraphExec* executable, CUgraph graph,
                                               CUDA_GRAPH_INSTANTIATE_PARAMS*) {
  return instantiated(call, executable, graph);
}
CUresult observe::cuGraphExecUpdate(ObservedCall& call, CUgraphExec executable, CUgraph graph,
                                    CUgraphExecUpdateResultInfo*) {
  return instantiated(call, &executable, graph);
}
CUresult observe::cuGraphExecUpdate(ObservedCall& call, CUgraphExec executable, CUgraph graph, CUgraphNode*,
                                    CUgraphExecUpdateResult*) {
  return instantiated(call, &executable, graph);
}
CUresult observe::cuGraphLaunch(ObservedCall& call, CUgraphExec executable, CUstream stream) {
  Recorder& recorder = call.thread.recorder();
  Event event = stamp_work(call, EventKind::kLaunch, stream);
  const std::uint32_t graph = recorder.number_of(executable);
  Key key;
  key.add(graph);
  std::uint32_t launch = call.thread.launches().find(key);
  if (launch == KeyMap::kNone) {
    Launch of_graph;
    of_graph.graph = graph;
    launch = recorder.next_launch().value;
    (void)call.thread.writer().define_call(LaunchId(launch), of_graph);
    call.thread.launches().insert(key, launch);
  }
  event.extra = launch;
  return append_work(call, event, call.real());
}
CUresult observe::cuGraphExecDestroy(ObservedCall& call, CUgraphExec executable) { return forgotten(call, executable); }
CUresult observe::cuGraphDestroy(ObservedCall& call, CUgraph graph) { return forgotten(call, graph); }

}  // namespace faultline::capture
