#include "vgpu/graph_operations.h"

#include "vgpu/copies.h"

namespace faultline::vgpu {

Operation copy_operation(const CUDA_MEMCPY3D& copy) {
  const PlannedCopy planned(copy_request(copy));
  return {.type = CU_GRAPH_NODE_TYPE_MEMCPY, .parameters = copy};
}

Operation fill_operation(const CUDA_MEMSET_NODE_PARAMS& set) {
  const PlannedFill planned(fill_request(set));
  return {.type = CU_GRAPH_NODE_TYPE_MEMSET, .parameters = set};
}

Operation event_operation(CUgraphNodeType type, CUevent event) {
  return {.type = type, .event_handle = event, .event = require_event(event)};
}

Operation child_operation(CUgraph child) {
  const auto lock = order_lock();
  return {.type = CU_GRAPH_NODE_TYPE_GRAPH, .child = require_graph(child)->clone()};
}

Operation operation_of(const CUgraphNodeParams& parameters) {
  switch (parameters.type) {
    case CU_GRAPH_NODE_TYPE_EMPTY: return {};
    case CU_GRAPH_NODE_TYPE_MEMCPY: return copy_operation(parameters.memcpy.copyParams);
    case CU_GRAPH_NODE_TYPE_MEMSET: {
      const CUDA_MEMSET_NODE_PARAMS_v2& set = parameters.memset;
      return fill_operation({.dst = set.dst,
                             .pitch = set.pitch,
                             .value = set.value,
                             .elementSize = set.elementSize,
                             .width = set.width,
                             .height = set.height});
    }
    case CU_GRAPH_NODE_TYPE_HOST:
      require(parameters.host.fn != nullptr);
      return host_operation({.fn = parameters.host.fn, .userData = parameters.host.userData});
    case CU_GRAPH_NODE_TYPE_GRAPH: return child_operation(parameters.graph.graph);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD: return event_operation(parameters.type, parameters.eventRecord.event);
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT: return event_operation(parameters.type, parameters.eventWait.event);
    default: refuse(CUDA_ERROR_NOT_SUPPORTED);
  }
}

}  // namespace faultline::vgpu
