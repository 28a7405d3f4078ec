// Asking a graph what it holds, and changing its edges.
#include <algorithm>

#include "vgpu/api.h"
#include "vgpu/call.h"
#include "vgpu/graph.h"

namespace faultline::vgpu {
namespace {

using Edge = std::pair<GraphNode*, GraphNode*>;  // what is needed, and by whom

// As the driver lists things: the count alone, or as many as there is room for and null in the rest.
template <class Put>
CUresult list(std::size_t* count, bool wanted, std::size_t found, const Put& put) {
  require(count != nullptr);
  if (!wanted) {
    *count = found;
    return CUDA_SUCCESS;
  }
  for (std::size_t at = 0; at < *count; ++at) put(at, at < found);
  *count = std::min(*count, found);
  return CUDA_SUCCESS;
}

CUresult list_nodes(CUgraphNode* places, CUgraphEdgeData* edges, std::size_t* count, const std::vector<GraphNode*>& nodes) {
  return list(count, places != nullptr, nodes.size(), [&](std::size_t at, bool there) {
    places[at] = there ? nodes[at]->handle : nullptr;
    if (edges != nullptr) edges[at] = {};
  });
}

CUresult list_edges(CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData* data, std::size_t* count, CUgraph graph) {
  const auto lock = order_lock();
  std::vector<Edge> edges;
  for (const auto& node : require_graph(graph)->nodes()) {
    for (GraphNode* need : node->needs) edges.emplace_back(need, node.get());
  }
  require((from == nullptr) == (to == nullptr));
  return list(count, from != nullptr, edges.size(), [&](std::size_t at, bool there) {
    from[at] = there ? edges[at].first->handle : nullptr;
    to[at] = there ? edges[at].second->handle : nullptr;
    if (data != nullptr) data[at] = {};
  });
}

std::vector<GraphNode*> dependents_of(const GraphNode* node) {
  std::vector<GraphNode*> dependents;
  for (const auto& other : node->graph->nodes()) {
    if (std::find(other->needs.begin(), other->needs.end(), node) != other->needs.end()) dependents.push_back(other.get());
  }
  return dependents;
}

CUresult change_edges(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to, std::size_t count, bool adding) {
  require(count == 0 || (from != nullptr && to != nullptr));
  const auto lock = order_lock();
  const GraphPointer target = require_graph(graph);
  for (std::size_t at = 0; at < count; ++at) {
    GraphNode* const need = require_node(from[at]);
    GraphNode* const node = require_node(to[at]);
    require(need->graph == target.get() && node->graph == target.get() && need != node);
    const auto known = std::find(node->needs.begin(), node->needs.end(), need);
    require((known == node->needs.end()) == adding);
    if (adding) {
      node->needs.push_back(need);
    } else {
      node->needs.erase(known);
    }
  }
  return CUDA_SUCCESS;
}

template <class Parameters>
CUresult parameters_of(CUgraphNode handle, Parameters* place) {
  require(place != nullptr);
  const auto lock = order_lock();
  const auto* const parameters = std::get_if<Parameters>(&require_node(handle)->operation.parameters);
  require(parameters != nullptr);
  *place = *parameters;
  return CUDA_SUCCESS;
}

CUresult event_of(CUgraphNode handle, CUgraphNodeType type, CUevent* event) {
  require(event != nullptr);
  const auto lock = order_lock();
  const GraphNode* const node = require_node(handle);
  require(node->operation.type == type);
  *event = node->operation.event_handle;
  return CUDA_SUCCESS;
}

}  // namespace

CUresult api::cuGraphGetNodes(CUgraph graph, CUgraphNode* places, std::size_t* count) {
  const auto lock = order_lock();
  std::vector<GraphNode*> nodes;
  for (const auto& node : require_graph(graph)->nodes()) nodes.push_back(node.get());
  return list_nodes(places, nullptr, count, nodes);
}

CUresult api::cuGraphGetRootNodes(CUgraph graph, CUgraphNode* places, std::size_t* count) {
  const auto lock = order_lock();
  std::vector<GraphNode*> roots;
  for (const auto& node : require_graph(graph)->nodes()) {
    if (node->needs.empty()) roots.push_back(node.get());
  }
  return list_nodes(places, nullptr, count, roots);
}

CUresult api::cuGraphGetEdges(CUgraph graph, CUgraphNode* from, CUgraphNode* to, std::size_t* count) { return list_edges(from, to, nullptr, count, graph); }
CUresult api::cuGraphGetEdges(CUgraph graph, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData* data, std::size_t* count) {
  return list_edges(from, to, data, count, graph);
}

CUresult api::cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode* places, std::size_t* count) {
  const auto lock = order_lock();
  return list_nodes(places, nullptr, count, require_node(node)->needs);
}
CUresult api::cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode* places, CUgraphEdgeData* data, std::size_t* count) {
  const auto lock = order_lock();
  return list_nodes(places, data, count, require_node(node)->needs);
}
CUresult api::cuGraphNodeGetDependentNodes(CUgraphNode node, CUgraphNode* places, std::size_t* count) {
  const auto lock = order_lock();
  return list_nodes(places, nullptr, count, dependents_of(require_node(node)));
}
CUresult api::cuGraphNodeGetDependentNodes(CUgraphNode node, CUgraphNode* places, CUgraphEdgeData* data, std::size_t* count) {
  const auto lock = order_lock();
  return list_nodes(places, data, count, dependents_of(require_node(node)));
}

CUresult api::cuGraphAddDependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to, std::size_t count) {
  return change_edges(graph, from, to, count, true);
}
CUresult api::cuGraphAddDependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to, const CUgraphEdgeData*, std::size_t count) {
  return change_edges(graph, from, to, count, true);
}
CUresult api::cuGraphRemoveDependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to, std::size_t count) {
  return change_edges(graph, from, to, count, false);
}
CUresult api::cuGraphRemoveDependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to, const CUgraphEdgeData*, std::size_t count) {
  return change_edges(graph, from, to, count, false);
}

CUresult api::cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType* type) {
  require(type != nullptr);
  const auto lock = order_lock();
  *type = require_node(node)->operation.type;
  return CUDA_SUCCESS;
}

CUresult api::cuGraphMemcpyNodeGetParams(CUgraphNode node, CUDA_MEMCPY3D* copy) { return parameters_of(node, copy); }
CUresult api::cuGraphMemsetNodeGetParams(CUgraphNode node, CUDA_MEMSET_NODE_PARAMS* set) { return parameters_of(node, set); }
CUresult api::cuGraphHostNodeGetParams(CUgraphNode node, CUDA_HOST_NODE_PARAMS* host) { return parameters_of(node, host); }
CUresult api::cuGraphEventRecordNodeGetEvent(CUgraphNode node, CUevent* event) { return event_of(node, CU_GRAPH_NODE_TYPE_EVENT_RECORD, event); }
CUresult api::cuGraphEventWaitNodeGetEvent(CUgraphNode node, CUevent* event) { return event_of(node, CU_GRAPH_NODE_TYPE_WAIT_EVENT, event); }

CUresult api::cuGraphChildGraphNodeGetGraph(CUgraphNode handle, CUgraph* graph) {
  require(graph != nullptr);
  const auto lock = order_lock();
  const GraphNode* const node = require_node(handle);
  require(node->operation.child != nullptr);
  *graph = publish(node->operation.child);
  return CUDA_SUCCESS;
}

}  // namespace faultline::vgpu
