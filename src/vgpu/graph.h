// Graphs: operations with what each needs to have happened before. Built node by node, or by capturing streams (capture.h).
//
// An executable graph is a copy in one order that respects all needs; a launch is one operation of a stream that runs them in that order. Everything
// here is under the order lock.
#pragma once

#include <functional>
#include <memory>
#include <variant>
#include <vector>

#include "vgpu/event.h"

namespace faultline::vgpu {

class Graph;

// What a stream does at one place in its order, and what a graph's node holds.
struct Operation {
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  std::function<void()> run = {};  // on a stream's thread; empty where there is nothing to do but keep the order
  // as a program may ask for them
  std::variant<std::monostate, CUDA_MEMCPY3D, CUDA_MEMSET_NODE_PARAMS, CUDA_HOST_NODE_PARAMS> parameters = {};
  CUevent event_handle = nullptr;  // of a node that records or waits
  EventPointer event = {};
  std::shared_ptr<Graph> child = {};
};

struct GraphNode {
  Graph* graph = nullptr;
  CUgraphNode handle = nullptr;
  Operation operation;
  std::vector<GraphNode*> needs;
};

class Graph {
 public:
  GraphNode* add(Operation operation, const std::vector<GraphNode*>& needs);
  void remove(GraphNode* node);
  const std::vector<std::shared_ptr<GraphNode>>& nodes() const { return nodes_; }
  std::vector<GraphNode*> in_order() const;  // refuses a graph that goes in circles
  std::shared_ptr<Graph> clone() const;
  ~Graph();

  CUgraph handle = nullptr;

 private:
  std::vector<std::shared_ptr<GraphNode>> nodes_;
};
using GraphPointer = std::shared_ptr<Graph>;

CUgraph publish(const GraphPointer& graph);  // gives it a handle
GraphPointer require_graph(CUgraph handle);
void destroy_graph(CUgraph handle);
GraphNode* require_node(CUgraphNode handle);

CUgraphExec instantiate(const Graph& graph, cuuint64_t flags);
void destroy_exec(CUgraphExec handle);
cuuint64_t flags_of(CUgraphExec handle);
void launch(CUgraphExec handle, Stream& stream);  // takes the order lock

}  // namespace faultline::vgpu
