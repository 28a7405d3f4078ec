#include "vgpu/graph.h"

#include <algorithm>
#include <unordered_map>

#include "vgpu/call.h"
#include "vgpu/capture.h"
#include "vgpu/copies.h"
#include "vgpu/handles.h"

namespace faultline::vgpu {
namespace {

struct ExecutableGraph {
  cuuint64_t flags = 0;
  std::vector<Operation> steps;
  CompletionPointer last_launch;  // launches of one executable graph run one after the other
};

Handles<CUgraph, Graph>& graphs() { return Handles<CUgraph, Graph>::get(); }
Handles<CUgraphNode, GraphNode>& graph_nodes() { return Handles<CUgraphNode, GraphNode>::get(); }
Handles<CUgraphExec, ExecutableGraph>& executables() { return Handles<CUgraphExec, ExecutableGraph>::get(); }

void append_steps(const Graph& graph, std::vector<Operation>& steps) {
  for (const GraphNode* node : graph.in_order()) {
    if (node->operation.child != nullptr) {
      append_steps(*node->operation.child, steps);
    } else {
      steps.push_back(node->operation);
    }
  }
}

// What one step does in this launch: an event's node records a new point, or waits for what was the latest when the graph was launched; a copy or a
// fill must find its memory still there.
std::function<void()> prepared(const Operation& step) {
  if (step.type == CU_GRAPH_NODE_TYPE_EVENT_RECORD) {
    step.event->latest = std::make_shared<EventPoint>();
    return [point = step.event->latest] { reach(*point); };
  }
  if (step.type == CU_GRAPH_NODE_TYPE_WAIT_EVENT) {
    const EventPointPointer point = step.event->latest;
    return point == nullptr ? std::function<void()>() : [point] { point->completion.wait(); };
  }
  try {
    if (const auto* copy = std::get_if<CUDA_MEMCPY3D>(&step.parameters))
      return [planned = PlannedCopy(copy_request(*copy))] { planned.run(); };
    if (const auto* set = std::get_if<CUDA_MEMSET_NODE_PARAMS>(&step.parameters))
      return [planned = PlannedFill(fill_request(*set))] { planned.run(); };
  } catch (const Refused&) {
    refuse(CUDA_ERROR_ILLEGAL_ADDRESS);
  }
  return step.run;
}

}  // namespace

GraphNode* Graph::add(Operation operation, const std::vector<GraphNode*>& needs) {
  const bool own = std::all_of(needs.begin(), needs.end(), [&](const GraphNode* need) { return need->graph == this; });
  require(own);
  auto node = std::make_shared<GraphNode>(
      GraphNode{.graph = this, .handle = nullptr, .operation = std::move(operation), .needs = needs});
  node->handle = graph_nodes().insert(node);
  nodes_.push_back(node);
  return node.get();
}

void Graph::remove(GraphNode* node) {
  for (const auto& other : nodes_) std::erase(other->needs, node);
  graph_nodes().remove(node->handle);
  std::erase_if(nodes_, [&](const auto& other) { return other.get() == node; });
}

Graph::~Graph() {
  for (const auto& node : nodes_) graph_nodes().remove(node->handle);
}

std::vector<GraphNode*> Graph::in_order() const {
  std::unordered_map<const GraphNode*, std::size_t> missing;
  std::unordered_map<const GraphNode*, std::vector<GraphNode*>> dependents;
  std::vector<GraphNode*> order;
  for (const auto& node : nodes_) {
    missing[node.get()] = node->needs.size();
    for (GraphNode* need : node->needs) dependents[need].push_back(node.get());
    if (node->needs.empty()) order.push_back(node.get());
  }
  for (std::size_t at = 0; at < order.size(); ++at) {
    for (GraphNode* dependent : dependents[order[at]]) {
      if (--missing[dependent] == 0) order.push_back(dependent);
    }
  }
  require(order.size() == nodes_.size());
  return order;
}

GraphPointer Graph::clone() const {
  auto copy = std::make_shared<Graph>();
  std::unordered_map<const GraphNode*, GraphNode*> copies;
  for (const GraphNode* node : in_order()) {
    Operation operation = node->operation;
    if (operation.child != nullptr) operation.child = operation.child->clone();
    std::vector<GraphNode*> needs;
    for (const GraphNode* need : node->needs) needs.push_back(copies[need]);
    copies[node] = copy->add(std::move(operation), needs);
  }
  return copy;
}

CUgraph publish(const GraphPointer& graph) {
  if (graph->handle == nullptr) graph->handle = graphs().insert(graph);
  return graph->handle;
}

GraphPointer require_graph(CUgraph handle) { return graphs().require(handle, CUDA_ERROR_INVALID_VALUE); }

void destroy_graph(CUgraph handle) { require(graphs().remove(handle) != nullptr); }

GraphNode* require_node(CUgraphNode handle) { return graph_nodes().require(handle, CUDA_ERROR_INVALID_VALUE).get(); }

CUgraphExec instantiate(const Graph& graph, cuuint64_t flags) {
  auto executable = std::make_shared<ExecutableGraph>();
  executable->flags = flags;
  append_steps(graph, executable->steps);
  return executables().insert(std::move(executable));
}

void destroy_exec(CUgraphExec handle) { require(executables().remove(handle) != nullptr); }

cuuint64_t flags_of(CUgraphExec handle) { return executables().require(handle, CUDA_ERROR_INVALID_VALUE)->flags; }

void launch(CUgraphExec handle, Stream& stream) {
  const auto executable = executables().require(handle, CUDA_ERROR_INVALID_VALUE);
  const auto lock = order_lock();
  require_not_captured(stream);
  std::vector<std::function<void()>> steps;
  for (const Operation& step : executable->steps) {
    if (std::function<void()> run = prepared(step)) steps.push_back(std::move(run));
  }
  executable->last_launch = stream.push(
      [steps = std::move(steps)] {
        for (const std::function<void()>& step : steps) step();
      },
      {executable->last_launch});
}

}  // namespace faultline::vgpu
