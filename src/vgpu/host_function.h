// Functions of the program that a stream calls.
#pragma once

#include "vgpu/call.h"
#include "vgpu/graph.h"

namespace faultline::vgpu {

inline Operation host_operation(const CUDA_HOST_NODE_PARAMS& parameters) {
  const auto run = [parameters] {
    const HostFunctionScope scope;
    parameters.fn(parameters.userData);
  };
  return {.type = CU_GRAPH_NODE_TYPE_HOST, .run = run, .parameters = parameters};
}

}  // namespace faultline::vgpu
