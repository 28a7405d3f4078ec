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
void list(std::size_t* count, bool wanted, std::size_t found, const Put& put) {
  require(count != nullptr);
  for (std::size_t at = 0; wanted && at < *count; ++at) put(at, at < found);
  *count = wanted ? std::min(*count, found) : found;
}

void list_nodes(CUgraphNode* places, CUgraphEdgeData* edges, std::size_t* count, const std::vector<GraphNode*>& nodes) {
  list(count, places != nullptr, nodes.size(), [&](std::size_t at, bool there) {
    places[at] = there ? nodes[at]->handle : nullptr;
    if (edges != nullptr) edges[at] = {};
  });
}

std::vector<GraphNode*> dependents_of(const GraphNode* node) {
  std::vector<GraphNode*> dependents;
  for (const auto& other : node->graph->nodes()) {
    if (std::find(other->needs.begin(), other->needs.end(), node) != other->needs.end())
      dependents.push_back(other.get());
  }
  return dependents;
}

void change_edges(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to, std::size_t count, bool adding) {
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
}

template <class Parameters>
void parameters_of(CUgraphNode handle, Parameters* place) {
  require(place != nullptr);
  const auto lock = order_lock();
  const auto* const parameters = std::get_if<Parameters>(&require_node(handle)->operation.parameters);
  require(parameters != nullptr);
  *place = *parameters;
}

void event_of(CUgraphNode handle, CUgraphNodeType type, CUevent* event) {
  require(event != nullptr);
  const auto lock = order_lock();
  const GraphNode* const node = require_node(handle);
  require(node->operation.type == type);
  *event = node->operation.event_handle;
}

}  // namespace

void api::cuGraphGetNodes(CUgraph graph, CUgraphNode* places, std::size_t* count) {
  const auto lock = order_lock();
  std::vector<GraphNode*> nodes;
  for (const auto& node : require_graph(graph)->nodes()) nodes.push_back(node.get());
  list_nodes(places, nullptr, count, nodes);
}

void api::cuGraphGetRootNodes(CUgraph graph, CUgraphNode* places, std::size_t* count) {
  const auto lock = order_lock();
  std::vector<GraphNode*> roots;
  for (const auto& node : require_graph(graph)->nodes()) {
    if (node->needs.empty()) roots.push_back(node.get());
  }
  list_nodes(places, nullptr, count, roots);
}

void api::cuGraphGetEdges(CUgraph graph, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData* data,
                          std::size_t* count) {
  const auto lock = order_lock();
  std::vector<Edge> edges;
  for (const auto& node : require_graph(graph)->nodes()) {
    for (GraphNode* need : node->needs) edges.emplace_back(need, node.get());
  }
  require((from == nullptr) == (to == nullptr));
  list(count, from != nullptr, edges.size(), [&](std::size_t at, bool there) {
    from[at] = there ? edges[at].first->handle : nullptr;
    to[at] = there ? edges[at].second->handle : nullptr;
    if (data != nullptr) data[at] = {};
  });
}
void api::cuGraphGetEdges(CUgraph graph, CUgraphNode* from, CUgraphNode* to, std::size_t* count) {
  api::cuGraphGetEdges(graph, from, to, nullptr, count);
}

void api::cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode* places, std::size_t* count) {
  api::cuGraphNodeGetDependencies(node, places, nullptr, count);
}
void api::cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode* places, CUgraphEdgeData* data, std::size_t* count) {
  const auto lock = order_lock();
  list_nodes(places, data, count, require_node(node)->needs);
}
void api::cuGraphNodeGetDependentNodes(CUgraphNode node, CUgraphNode* places, std::size_t* count) {
  api::cuGraphNodeGetDependentNodes(node, places, nullptr, count);
}
void api::cuGraphNodeGetDependentNodes(CUgraphNode node, CUgraphNode* places, CUgraphEdgeData* data,
                                       std::size_t* count) {
  const auto lock = order_lock();
  list_nodes(places, data, count, dependents_of(require_node(node)));
}

void api::cuGraphAddDependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to, std::size_t count) {
  change_edges(graph, from, to, count, true);
}
void api::cuGraphAddDependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to, const CUgraphEdgeData*,
                                 std::size_t count) {
  change_edges(graph, from, to, count, true);
}
void api::cuGraphRemoveDependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to, std::size_t count) {
  change_edges(graph, from, to, count, false);
}
void api::cuGraphRemoveDependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                    const CUgraphEdgeData*, std::size_t count) {
  change_edges(graph, from, to, count, false);
}

void api::cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType* type) {
  require(type != nullptr);
  const auto lock = order_lock();
  *type = require_node(node)->operation.type;
}

void api::cuGraphMemcpyNodeGetParams(CUgraphNode node, CUDA_MEMCPY3D* copy) { parameters_of(node, copy); }
void api::cuGraphMemsetNodeGetParams(CUgraphNode node, CUDA_MEMSET_NODE_PARAMS* set) { parameters_of(node, set); }
void api::cuGraphHostNodeGetParams(CUgraphNode node, CUDA_HOST_NODE_PARAMS* host) { parameters_of(node, host); }
void api::cuGraphEventRecordNodeGetEvent(CUgraphNode node, CUevent* event) {
  event_of(node, CU_GRAPH_NODE_TYPE_EVENT_RECORD, event);
}
void api::cuGraphEventWaitNodeGetEvent(CUgraphNode node, CUevent* event) {
  event_of(node, CU_GRAPH_NODE_TYPE_WAIT_EVENT, event);
}

void api::cuGraphChildGraphNodeGetGraph(CUgraphNode handle, CUgraph* graph) {
  require(graph != nullptr);
  const auto lock = order_lock();
  const GraphNode* const node = require_node(handle);
  require(node->operation.child != nullptr);
  *graph = publish(node->operation.child);
}

}  // namespace faultline::vgpu
