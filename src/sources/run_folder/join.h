// One process seen from two sides, made one trace: PyTorch's history of its blocks and segments, and the capture's record of the driver's boundary.
//
// PyTorch's events stay as they are, in their order and heaps, so that whatever holds of the history alone (the proof of its allocator above all)
// holds of the joint trace. The capture's record of the same segments is dropped; its other allocations of device memory come to stand in a heap beside
// PyTorch's. Both are put in order by the segments they share, and between two of those by time.
#pragma once

#include "trace/trace.h"

namespace faultline {

Trace join_traces(Trace torch, const Trace& capture);

}  // namespace faultline
