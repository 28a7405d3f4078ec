// Functions of the program that a stream calls.
#pragma once

#include "vgpu/call.h"
#include "vgpu/graph.h"

namespace faultline::vgpu {

inline Operation host_operation(const CUDA_HOST_NODE_PARAMS& parameters) {
  Operation operation;
  operation.type = CU_GRAPH_NODE_TYPE_HOST;
  operation.parameters = parameters;
  operation.run = [parameters] {
    const HostFunctionScope scope;
    parameters.fn(parameters.userData);
  };
  return operation;
}

}  // namespace faultline::vgpu
