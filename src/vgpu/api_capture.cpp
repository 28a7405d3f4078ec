// Turning what is called on streams into graphs.
#include "vgpu/api.h"
#include "vgpu/call.h"
#include "vgpu/capture.h"

namespace faultline::vgpu {
namespace {

struct CaptureAnswers {
  CUstreamCaptureStatus* status = nullptr;
  cuuint64_t* id = nullptr;
  CUgraph* graph = nullptr;
  const CUgraphNode** nodes = nullptr;
  std::size_t* count = nullptr;
};

void tell(CUstream stream, const CaptureAnswers& answers) {
  require(answers.status != nullptr);
  const StreamPointer target = require_stream(stream);
  const auto lock = order_lock();
  *answers.status = capture_status(*target);
  if (*answers.status != CU_STREAM_CAPTURE_STATUS_ACTIVE) return;
  if (answers.id != nullptr) *answers.id = target->capture->id;
  if (answers.graph != nullptr) *answers.graph = publish(target->capture->graph);
  if (answers.count != nullptr) *answers.count = target->capture_frontier.size();
  if (answers.nodes != nullptr) {
    std::vector<CUgraphNode>& listed = target->capture->told;
    listed.clear();
    for (const GraphNode* node : target->capture_frontier) listed.push_back(node->handle);
    *answers.nodes = listed.data();
  }
}

}  // namespace

void api::cuStreamBeginCapture(CUstream stream, CUstreamCaptureMode mode) {
  require(mode >= CU_STREAM_CAPTURE_MODE_GLOBAL && mode <= CU_STREAM_CAPTURE_MODE_RELAXED);
  const StreamPointer target = require_stream(stream);
  const auto lock = order_lock();
  begin_capture(target, mode, std::make_shared<Graph>(), {});
}
void api::cuStreamBeginCapture(CUstream stream) { api::cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL); }

void api::cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph, const CUgraphNode* needs, const CUgraphEdgeData*,
                                      std::size_t count, CUstreamCaptureMode mode) {
  require(count == 0 || needs != nullptr);
  const StreamPointer target = require_stream(stream);
  const auto lock = order_lock();
  std::vector<GraphNode*> nodes;
  for (std::size_t at = 0; at < count; ++at) nodes.push_back(require_node(needs[at]));
  begin_capture(target, mode, require_graph(graph), std::move(nodes));
}

void api::cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  require(graph != nullptr);
  const StreamPointer target = require_stream(stream);
  const auto lock = order_lock();
  *graph = nullptr;
  *graph = publish(end_capture(*target));
}

void api::cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status) { tell(stream, {.status = status}); }

void api::cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id) {
  tell(stream, {.status = status, .id = id});
}

void api::cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph* graph,
                                 const CUgraphNode** nodes, std::size_t* count) {
  tell(stream, {.status = status, .id = id, .graph = graph, .nodes = nodes, .count = count});
}

void api::cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph* graph,
                                 const CUgraphNode** nodes, const CUgraphEdgeData** edges, std::size_t* count) {
  if (edges != nullptr) *edges = nullptr;
  tell(stream, {.status = status, .id = id, .graph = graph, .nodes = nodes, .count = count});
}

void api::cuStreamUpdateCaptureDependencies(CUstream stream, CUgraphNode* nodes, std::size_t count, unsigned flags) {
  require(count == 0 || nodes != nullptr);
  const StreamPointer target = require_stream(stream);
  const auto lock = order_lock();
  require(captured(*target), CUDA_ERROR_ILLEGAL_STATE);
  if (flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES) target->capture_frontier.clear();
  for (std::size_t at = 0; at < count; ++at) target->capture_frontier.push_back(require_node(nodes[at]));
}

void api::cuStreamUpdateCaptureDependencies(CUstream stream, CUgraphNode* nodes, const CUgraphEdgeData*,
                                            std::size_t count, unsigned flags) {
  api::cuStreamUpdateCaptureDependencies(stream, nodes, count, flags);
}

void api::cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  require(mode != nullptr && *mode >= CU_STREAM_CAPTURE_MODE_GLOBAL && *mode <= CU_STREAM_CAPTURE_MODE_RELAXED);
  *mode = exchange_capture_mode(*mode);
}

}  // namespace faultline::vgpu
