// Graphs, built node by node, and their launches.
#include "vgpu/api.h"
#include "vgpu/call.h"
#include "vgpu/capture.h"
#include "vgpu/context.h"
#include "vgpu/graph_operations.h"

namespace faultline::vgpu {
namespace {

std::vector<GraphNode*> nodes_of(const CUgraphNode* handles, std::size_t count) {
  require(count == 0 || handles != nullptr);
  std::vector<GraphNode*> nodes;
  for (std::size_t at = 0; at < count; ++at) nodes.push_back(require_node(handles[at]));
  return nodes;
}

void add(CUgraphNode* node, CUgraph graph, const CUgraphNode* needs, std::size_t count, Operation operation) {
  require(node != nullptr);
  const auto lock = order_lock();
  *node = require_graph(graph)->add(std::move(operation), nodes_of(needs, count))->handle;
}

void make_executable(CUgraphExec* executable, CUgraph graph, cuuint64_t flags) {
  require(executable != nullptr);
  const auto lock = order_lock();
  *executable = instantiate(*require_graph(graph), flags);
}

}  // namespace

void api::cuGraphCreate(CUgraph* graph, unsigned flags) {
  require(graph != nullptr && flags == 0);
  *graph = publish(std::make_shared<Graph>());
}

void api::cuGraphDestroy(CUgraph graph) {
  const auto lock = order_lock();
  destroy_graph(graph);
}

void api::cuGraphClone(CUgraph* copy, CUgraph graph) {
  require(copy != nullptr);
  const auto lock = order_lock();
  *copy = publish(require_graph(graph)->clone());
}

void api::cuGraphAddEmptyNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* needs, std::size_t count) {
  add(node, graph, needs, count, {});
}

void api::cuGraphAddMemcpyNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* needs, std::size_t count,
                               const CUDA_MEMCPY3D* copy, CUcontext context) {
  require(copy != nullptr);
  require_context(context);
  add(node, graph, needs, count, copy_operation(*copy));
}

void api::cuGraphAddMemsetNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* needs, std::size_t count,
                               const CUDA_MEMSET_NODE_PARAMS* set, CUcontext context) {
  require(set != nullptr);
  require_context(context);
  add(node, graph, needs, count, fill_operation(*set));
}

void api::cuGraphAddHostNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* needs, std::size_t count,
                             const CUDA_HOST_NODE_PARAMS* host) {
  require(host != nullptr && host->fn != nullptr);
  add(node, graph, needs, count, host_operation(*host));
}

void api::cuGraphAddEventRecordNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* needs, std::size_t count,
                                    CUevent event) {
  add(node, graph, needs, count, event_operation(CU_GRAPH_NODE_TYPE_EVENT_RECORD, event));
}

void api::cuGraphAddEventWaitNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* needs, std::size_t count,
                                  CUevent event) {
  add(node, graph, needs, count, event_operation(CU_GRAPH_NODE_TYPE_WAIT_EVENT, event));
}

void api::cuGraphAddChildGraphNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* needs, std::size_t count,
                                   CUgraph child) {
  add(node, graph, needs, count, child_operation(child));
}

void api::cuGraphAddNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* needs, std::size_t count,
                         CUgraphNodeParams* parameters) {
  require(parameters != nullptr);
  add(node, graph, needs, count, operation_of(*parameters));
}

void api::cuGraphAddNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* needs, const CUgraphEdgeData*,
                         std::size_t count, CUgraphNodeParams* parameters) {
  api::cuGraphAddNode(node, graph, needs, count, parameters);
}

void api::cuGraphDestroyNode(CUgraphNode handle) {
  const auto lock = order_lock();
  GraphNode* const node = require_node(handle);
  require(!captured_into(*node->graph));  // streams hold on to its nodes
  node->graph->remove(node);
}

void api::cuGraphInstantiate(CUgraphExec* executable, CUgraph graph, CUgraphNode* wrong, char* log,
                             std::size_t log_bytes) {
  if (wrong != nullptr) *wrong = nullptr;
  if (log != nullptr && log_bytes != 0) *log = '\0';
  make_executable(executable, graph, 0);
}

void api::cuGraphInstantiateWithFlags(CUgraphExec* executable, CUgraph graph, unsigned long long flags) {
  make_executable(executable, graph, flags);
}

void api::cuGraphInstantiateWithParams(CUgraphExec* executable, CUgraph graph,
                                       CUDA_GRAPH_INSTANTIATE_PARAMS* parameters) {
  require(parameters != nullptr);
  parameters->hErrNode_out = nullptr;
  parameters->result_out = CUDA_GRAPH_INSTANTIATE_ERROR;
  make_executable(executable, graph, parameters->flags);
  parameters->result_out = CUDA_GRAPH_INSTANTIATE_SUCCESS;
}

void api::cuGraphExecDestroy(CUgraphExec executable) { destroy_exec(executable); }

void api::cuGraphExecGetFlags(CUgraphExec executable, cuuint64_t* flags) {
  answer(flags, [&] { return flags_of(executable); });
}

void api::cuGraphLaunch(CUgraphExec executable, CUstream stream) { launch(executable, *require_stream(stream)); }

void api::cuGraphUpload(CUgraphExec executable, CUstream stream) {
  flags_of(executable);
  require_stream(stream);
}

}  // namespace faultline::vgpu
