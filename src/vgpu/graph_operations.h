// The operations that a graph's nodes can hold, from the driver's descriptions of them. Each refuses what cannot be.
#pragma once

#include "vgpu/host_function.h"

namespace faultline::vgpu {

Operation copy_operation(const CUDA_MEMCPY3D& copy);
Operation fill_operation(const CUDA_MEMSET_NODE_PARAMS& set);
Operation event_operation(CUgraphNodeType type, CUevent event);
Operation child_operation(CUgraph child);  // a copy of that graph
Operation operation_of(const CUgraphNodeParams& parameters);

}  // namespace faultline::vgpu
