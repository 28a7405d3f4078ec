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

CUresult add(CUgraphNode* node, CUgraph graph, const CUgraphNode* needs, std::size_t count, Operation operation) {
  require(node != nullptr);
  const auto lock = order_lock();
  *node = require_graph(graph)->add(std::move(operation), nodes_of(needs, count))->handle;
  return CUDA_SUCCESS;
}

CUresult add_any(CUgraphNode* node, CUgraph graph, const CUgraphNode* needs, std::size_t count, const CUgraphNodeParams* parameters) {
  require(parameters != nullptr);
  return add(node, graph, needs, count, operation_of(*parameters));
}

CUresult make_executable(CUgraphExec* executable, CUgraph graph, cuuint64_t flags) {
  require(executable != nullptr);
  const auto lock = order_lock();
  *executable = instantiate(*require_graph(graph), flags);
  return CUDA_SUCCESS;
}

CUresult launch_on(CUgraphExec executable, CUstream stream) {
  launch(executable, *require_stream(stream));
  return CUDA_SUCCESS;
}

}  // namespace

CUresult api::cuGraphCreate(CUgraph* graph, unsigned flags) {
  require(graph != nullptr && flags == 0);
  *graph = publish(std::make_shared<Graph>());
  return CUDA_SUCCESS;
}

CUresult api::cuGraphDestroy(CUgraph graph) {
  const auto lock = order_lock();
  destroy_graph(graph);
  return CUDA_SUCCESS;
}

CUresult api::cuGraphClone(CUgraph* copy, CUgraph graph) {
  require(copy != nullptr);
  const auto lock = order_lock();
  *copy = publish(require_graph(graph)->clone());
  return CUDA_SUCCESS;
}

CUresult api::cuGraphAddEmptyNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* needs, std::size_t count) { return add(node, graph, needs, count, {}); }

CUresult api::cuGraphAddMemcpyNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* needs, std::size_t count, const CUDA_MEMCPY3D* copy, CUcontext context) {
  require(copy != nullptr);
  require_context(context);
  return add(node, graph, needs, count, copy_operation(*copy));
}

CUresult api::cuGraphAddMemsetNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* needs, std::size_t count, const CUDA_MEMSET_NODE_PARAMS* set,
                                   CUcontext context) {
  require(set != nullptr);
  require_context(context);
  return add(node, graph, needs, count, fill_operation(*set));
}

CUresult api::cuGraphAddHostNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* needs, std::size_t count, const CUDA_HOST_NODE_PARAMS* host) {
  require(host != nullptr && host->fn != nullptr);
  return add(node, graph, needs, count, host_operation(*host));
}

CUresult api::cuGraphAddEventRecordNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* needs, std::size_t count, CUevent event) {
  return add(node, graph, needs, count, event_operation(CU_GRAPH_NODE_TYPE_EVENT_RECORD, event));
}

CUresult api::cuGraphAddEventWaitNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* needs, std::size_t count, CUevent event) {
  return add(node, graph, needs, count, event_operation(CU_GRAPH_NODE_TYPE_WAIT_EVENT, event));
}

CUresult api::cuGraphAddChildGraphNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* needs, std::size_t count, CUgraph child) {
  return add(node, graph, needs, count, child_operation(child));
}

CUresult api::cuGraphAddNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* needs, std::size_t count, CUgraphNodeParams* parameters) {
  return add_any(node, graph, needs, count, parameters);
}

CUresult api::cuGraphAddNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* needs, const CUgraphEdgeData*, std::size_t count,
                             CUgraphNodeParams* parameters) {
  return add_any(node, graph, needs, count, parameters);
}

CUresult api::cuGraphDestroyNode(CUgraphNode handle) {
  const auto lock = order_lock();
  GraphNode* const node = require_node(handle);
  require(!captured_into(*node->graph));  // streams hold on to its nodes
  node->graph->remove(node);
  return CUDA_SUCCESS;
}

CUresult api::cuGraphInstantiate(CUgraphExec* executable, CUgraph graph, CUgraphNode* wrong, char* log, std::size_t log_bytes) {
  if (wrong != nullptr) *wrong = nullptr;
  if (log != nullptr && log_bytes != 0) *log = '\0';
  return make_executable(executable, graph, 0);
}

CUresult api::cuGraphInstantiateWithFlags(CUgraphExec* executable, CUgraph graph, unsigned long long flags) { return make_executable(executable, graph, flags); }

CUresult api::cuGraphInstantiateWithParams(CUgraphExec* executable, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS* parameters) {
  require(parameters != nullptr);
  parameters->hErrNode_out = nullptr;
  parameters->result_out = CUDA_GRAPH_INSTANTIATE_ERROR;
  const CUresult result = make_executable(executable, graph, parameters->flags);
  parameters->result_out = CUDA_GRAPH_INSTANTIATE_SUCCESS;
  return result;
}

CUresult api::cuGraphExecDestroy(CUgraphExec executable) {
  destroy_exec(executable);
  return CUDA_SUCCESS;
}

CUresult api::cuGraphExecGetFlags(CUgraphExec executable, cuuint64_t* flags) { return answer(flags, [&] { return flags_of(executable); }); }

CUresult api::cuGraphLaunch(CUgraphExec executable, CUstream stream) { return launch_on(executable, stream); }

CUresult api::cuGraphUpload(CUgraphExec executable, CUstream stream) {
  flags_of(executable);
  require_stream(stream);
  return CUDA_SUCCESS;
}

}  // namespace faultline::vgpu
