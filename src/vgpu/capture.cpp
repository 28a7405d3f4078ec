#include "vgpu/capture.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "vgpu/call.h"
#include "vgpu/context.h"

namespace faultline::vgpu {
namespace {

thread_local CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

std::vector<std::shared_ptr<CaptureSequence>>& active_captures() {
  static auto& active = *new std::vector<std::shared_ptr<CaptureSequence>>;
  return active;
}

void join(const StreamPointer& stream, const std::shared_ptr<CaptureSequence>& capture) {
  stream->capture = capture;
  capture->streams.push_back(stream);
}

void leave(CaptureSequence& capture) {
  for (const std::weak_ptr<Stream>& weak : capture.streams) {
    if (const StreamPointer stream = weak.lock(); stream != nullptr && stream->capture.get() == &capture) {
      stream->capture = nullptr;
      stream->capture_frontier.clear();
    }
  }
  std::erase_if(active_captures(), [&](const auto& active) { return active.get() == &capture; });
}

// Work on the legacy default stream would wait for blocking streams, which a captured stream cannot be waited for.
void require_no_implicit_wait(const Stream& stream) {
  if (stream.role != StreamRole::kLegacyDefault || active_captures().empty()) return;
  bool disturbed = false;
  for (const StreamPointer& other : stream.context.streams()) {
    if (other->capture == nullptr || !other->blocking()) continue;
    other->capture->invalidated = true;
    disturbed = true;
  }
  require(!disturbed, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
}

GraphNode* capture_operation(Stream& stream, Operation operation) {
  require(!stream.capture->invalidated, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  GraphNode* const node = stream.capture->graph->add(std::move(operation), stream.capture_frontier);
  stream.capture_frontier = {node};
  return node;
}

// Every captured node must lead to the origin's last ones.
bool all_joined(const CaptureSequence& capture, const std::vector<GraphNode*>& frontier) {
  std::unordered_set<const GraphNode*> reached(frontier.begin(), frontier.end());
  std::vector<const GraphNode*> to_visit(frontier.begin(), frontier.end());
  while (!to_visit.empty()) {
    const GraphNode* const node = to_visit.back();
    to_visit.pop_back();
    for (const GraphNode* need : node->needs) {
      if (reached.insert(need).second) to_visit.push_back(need);
    }
  }
  const auto& nodes = capture.graph->nodes();
  return std::all_of(nodes.begin() + static_cast<std::ptrdiff_t>(std::min(capture.nodes_before, nodes.size())),
                     nodes.end(), [&](const auto& node) { return reached.contains(node.get()); });
}

}  // namespace

bool captured(const Stream& stream) { return stream.capture != nullptr; }

bool captured_into(const Graph& graph) {
  const auto& active = active_captures();
  return std::any_of(active.begin(), active.end(), [&](const auto& capture) { return capture->graph.get() == &graph; });
}

CompletionPointer submit(Stream& stream, Operation operation) {
  const auto lock = order_lock();
  if (captured(stream)) {
    capture_operation(stream, std::move(operation));
    return nullptr;
  }
  require_no_implicit_wait(stream);
  return stream.push(std::move(operation.run));
}

void record_event(Stream& stream, const EventPointer& event, CUevent handle, bool external) {
  const auto lock = order_lock();
  if (captured(stream)) {
    require(!stream.capture->invalidated, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    if (external) {
      capture_operation(stream, {.type = CU_GRAPH_NODE_TYPE_EVENT_RECORD, .event_handle = handle, .event = event});
    } else {
      event->capture = stream.capture;
      event->capture_nodes = stream.capture_frontier;
    }
    return;
  }
  require_no_implicit_wait(stream);
  event->capture = nullptr;
  event->capture_nodes.clear();
  event->latest = std::make_shared<EventPoint>();
  stream.push([point = event->latest] { reach(*point); });
}

void wait_for_event(const StreamPointer& stream, const EventPointer& event, CUevent handle, bool external) {
  const auto lock = order_lock();
  if (external && captured(*stream)) {
    capture_operation(*stream, {.type = CU_GRAPH_NODE_TYPE_WAIT_EVENT, .event_handle = handle, .event = event});
    return;
  }
  if (event->capture != nullptr) {
    const bool ended =
        std::find(active_captures().begin(), active_captures().end(), event->capture) == active_captures().end();
    require(!ended, CUDA_ERROR_CAPTURED_EVENT);
    require(!event->capture->invalidated, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    require(stream->role != StreamRole::kLegacyDefault, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    if (stream->capture == nullptr) join(stream, event->capture);
    if (stream->capture != event->capture) {
      stream->capture->invalidated = event->capture->invalidated = true;
      refuse(CUDA_ERROR_STREAM_CAPTURE_MERGE);
    }
    for (GraphNode* node : event->capture_nodes) {
      auto& frontier = stream->capture_frontier;
      if (std::find(frontier.begin(), frontier.end(), node) == frontier.end()) frontier.push_back(node);
    }
    return;
  }
  if (captured(*stream)) {  // on work outside of the capture
    stream->capture->invalidated = true;
    refuse(CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
  }
  if (event->latest == nullptr) return;
  require_no_implicit_wait(*stream);
  stream->push({}, {completion_of(event->latest)});
}

void require_not_captured(Stream& stream) {
  if (captured(stream)) {
    stream.capture->invalidated = true;
    refuse(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  }
  require_no_implicit_wait(stream);
}

void begin_capture(const StreamPointer& stream, CUstreamCaptureMode mode, GraphPointer graph,
                   std::vector<GraphNode*> needs) {
  require(stream->role != StreamRole::kLegacyDefault, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  require(!captured(*stream), CUDA_ERROR_ILLEGAL_STATE);
  static std::uint64_t next_id = 1;
  auto capture = std::make_shared<CaptureSequence>();
  capture->id = next_id++;
  capture->nodes_before = graph->nodes().size();
  capture->graph = std::move(graph);
  capture->origin = stream.get();
  capture->mode = mode;
  capture->thread = std::this_thread::get_id();
  active_captures().push_back(capture);
  join(stream, capture);
  stream->capture_frontier = std::move(needs);
}

GraphPointer end_capture(Stream& stream) {
  require(captured(stream), CUDA_ERROR_ILLEGAL_STATE);
  const std::shared_ptr<CaptureSequence> capture = stream.capture;
  require(capture->origin == &stream, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
  require(capture->mode == CU_STREAM_CAPTURE_MODE_RELAXED || capture->thread == std::this_thread::get_id(),
          CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
  const bool joined = all_joined(*capture, stream.capture_frontier);
  leave(*capture);
  require(!capture->invalidated, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  require(joined, CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
  return capture->graph;
}

CUstreamCaptureStatus capture_status(const Stream& stream) {
  if (!captured(stream)) return CU_STREAM_CAPTURE_STATUS_NONE;
  return stream.capture->invalidated ? CU_STREAM_CAPTURE_STATUS_INVALIDATED : CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

void require_no_capture_disturbed() {
  const auto lock = order_lock();
  if (thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED) return;
  bool disturbed = false;
  for (const auto& capture : active_captures()) {
    if (capture->mode == CU_STREAM_CAPTURE_MODE_RELAXED) continue;
    const bool own = capture->thread == std::this_thread::get_id();
    const bool global = capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL && thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
    if (!own && !global) continue;
    capture->invalidated = true;
    disturbed = true;
  }
  require(!disturbed, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

CUstreamCaptureMode exchange_capture_mode(CUstreamCaptureMode mode) { return std::exchange(thread_mode, mode); }

}  // namespace faultline::vgpu
