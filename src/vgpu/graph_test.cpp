#include <string>
#include <thread>

#include "vgpu/vgpu_test_support.h"

namespace faultline::vgpu {
namespace {

class VirtualGraphs : public VirtualGpu {
 protected:
  static CUgraphExec instantiate(CUgraph graph) {
    CUgraphExec executable = nullptr;
    EXPECT_CUDA(cuGraphInstantiate(&executable, graph, 0));
    return executable;
  }
  static std::size_t node_count(CUgraph graph) {
    std::size_t count = 0;
    EXPECT_CUDA(cuGraphGetNodes(graph, nullptr, &count));
    return count;
  }
  static CUDA_MEMSET_NODE_PARAMS set_of(CUdeviceptr address, unsigned value, std::size_t count) {
    return {.dst = address, .pitch = 0, .value = value, .elementSize = 1, .width = count, .height = 1};
  }
};

TEST_F(VirtualGraphs, CapturedWorkRunsAtTheLaunchAndNotBefore) {
  const CUstream stream = create_stream();
  const CUdeviceptr address = allocate(100);
  ASSERT_CUDA(cuMemsetD8(address, 0, 100));
  ASSERT_CUDA(cuCtxSynchronize());
  ASSERT_CUDA(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CUstreamCaptureStatus status{};
  ASSERT_CUDA(cuStreamIsCapturing(stream, &status));
  EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
  ASSERT_CUDA(cuMemsetD8Async(address, 5, 100, stream));
  ASSERT_CUDA(cuMemcpyDtoDAsync(address, address + 50, 10, stream));
  CUgraph graph = nullptr;
  ASSERT_CUDA(cuStreamEndCapture(stream, &graph));
  EXPECT_EQ(node_count(graph), 2u);
  EXPECT_EQ(byte_at(address), 0);
  const CUgraphExec executable = instantiate(graph);
  ASSERT_CUDA(cuGraphDestroy(graph));
  ASSERT_CUDA(cuGraphLaunch(executable, stream));
  ASSERT_CUDA(cuStreamSynchronize(stream));
  EXPECT_EQ(byte_at(address), 5);
  ASSERT_CUDA(cuGraphExecDestroy(executable));
  EXPECT_EQ(cuGraphLaunch(executable, stream), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(VirtualGraphs, CaptureSpreadsThroughEvents) {
  const CUstream origin = create_stream(CU_STREAM_NON_BLOCKING), branch = create_stream(CU_STREAM_NON_BLOCKING);
  const CUevent fork = create_event(), join = create_event();
  const CUdeviceptr address = allocate(2);
  ASSERT_CUDA(cuStreamBeginCapture(origin, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  ASSERT_CUDA(cuMemsetD8Async(address, 1, 2, origin));
  ASSERT_CUDA(cuEventRecord(fork, origin));
  EXPECT_EQ(cuEventQuery(create_event()), CUDA_SUCCESS);
  ASSERT_CUDA(cuStreamWaitEvent(branch, fork, 0));
  ASSERT_CUDA(cuMemsetD8Async(address, 2, 1, branch));
  ASSERT_CUDA(cuMemsetD8Async(address + 1, 3, 1, origin));
  ASSERT_CUDA(cuEventRecord(join, branch));
  ASSERT_CUDA(cuStreamWaitEvent(origin, join, 0));
  CUstreamCaptureStatus status{};
  cuuint64_t id = 0;
  CUgraph graph = nullptr;
  const CUgraphNode* frontier = nullptr;
  std::size_t frontier_size = 0;
  ASSERT_CUDA(cuStreamGetCaptureInfo(origin, &status, &id, &graph, &frontier, nullptr, &frontier_size));
  EXPECT_EQ(frontier_size, 2u);
  ASSERT_CUDA(cuStreamEndCapture(origin, &graph));
  EXPECT_EQ(node_count(graph), 3u);
  std::size_t edges = 0;
  ASSERT_CUDA(cuGraphGetEdges(graph, nullptr, nullptr, nullptr, &edges));
  EXPECT_EQ(edges, 2u);
  ASSERT_CUDA(cuStreamIsCapturing(branch, &status));
  EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_NONE);
  ASSERT_CUDA(cuGraphLaunch(instantiate(graph), branch));
  ASSERT_CUDA(cuCtxSynchronize());
  EXPECT_EQ(byte_at(address), 2);
  EXPECT_EQ(byte_at(address + 1), 3);
}

TEST_F(VirtualGraphs, ABranchThatWasNotJoinedIsReported) {
  const CUstream origin = create_stream(), branch = create_stream();
  const CUevent fork = create_event();
  const CUdeviceptr address = allocate(2);
  ASSERT_CUDA(cuStreamBeginCapture(origin, CU_STREAM_CAPTURE_MODE_RELAXED));
  ASSERT_CUDA(cuEventRecord(fork, origin));
  ASSERT_CUDA(cuStreamWaitEvent(branch, fork, 0));
  ASSERT_CUDA(cuMemsetD8Async(address, 2, 1, branch));
  CUgraph graph = nullptr;
  EXPECT_EQ(cuStreamEndCapture(branch, &graph), CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
  EXPECT_EQ(cuStreamEndCapture(origin, &graph), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
  EXPECT_EQ(graph, nullptr);
}

TEST_F(VirtualGraphs, WhatACaptureForbidsInvalidatesIt) {
  const CUstream stream = create_stream();
  CUgraph graph = nullptr;
  CUdeviceptr address = 0;
  ASSERT_CUDA(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  EXPECT_EQ(cuMemAlloc(&address, 100), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_EQ(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  ASSERT_CUDA(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  EXPECT_CUDA(cuMemAlloc(&address, 100));
  EXPECT_EQ(cuStreamSynchronize(stream), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_EQ(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  ASSERT_CUDA(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  EXPECT_EQ(cuMemsetD8Async(address, 1, 1, nullptr), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  EXPECT_EQ(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  EXPECT_EQ(cuStreamEndCapture(stream, &graph), CUDA_ERROR_ILLEGAL_STATE);
}

TEST_F(VirtualGraphs, AnotherThreadIsHeldUpByGlobalCapturesOnly) {
  const CUstream stream = create_stream();
  CUgraph graph = nullptr;
  ASSERT_CUDA(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  std::thread([this] {
    EXPECT_CUDA(cuCtxSetCurrent(context_));
    EXPECT_CUDA(cuMemFree(allocate(100)));
  }).join();
  ASSERT_CUDA(cuStreamEndCapture(stream, &graph));
  ASSERT_CUDA(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  std::thread([this] {
    EXPECT_CUDA(cuCtxSetCurrent(context_));
    CUdeviceptr address = 0;
    EXPECT_EQ(cuMemAlloc(&address, 100), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  }).join();
  EXPECT_EQ(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

TEST_F(VirtualGraphs, NodesRunAfterWhatTheyNeed) {
  const CUdeviceptr address = allocate(4);
  CUgraph graph = nullptr;
  CUgraphNode last = nullptr, copy_node = nullptr, host_node = nullptr, empty = nullptr;
  ASSERT_CUDA(cuGraphCreate(&graph, 0));
  std::string seen;
  CUDA_HOST_NODE_PARAMS host{[](void* text) { *static_cast<std::string*>(text) += "host "; }, &seen};
  CUDA_MEMSET_NODE_PARAMS first_set = set_of(address, 1, 4), last_set = set_of(address, 2, 1);
  // Added in an order that is not the one they run in.
  ASSERT_CUDA(cuGraphAddMemsetNode(&last, graph, nullptr, 0, &last_set, context_));
  ASSERT_CUDA(cuGraphAddHostNode(&host_node, graph, nullptr, 0, &host));
  CUgraphNode first = nullptr;
  ASSERT_CUDA(cuGraphAddMemsetNode(&first, graph, nullptr, 0, &first_set, context_));
  ASSERT_CUDA(cuGraphAddEmptyNode(&empty, graph, &first, 1));
  CUDA_MEMCPY3D copy{};
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = address;
  copy.dstDevice = address + 3;
  copy.WidthInBytes = copy.Height = copy.Depth = 1;
  ASSERT_CUDA(cuGraphAddMemcpyNode(&copy_node, graph, &empty, 1, &copy, context_));
  ASSERT_CUDA(cuGraphAddDependencies(graph, &copy_node, &last, nullptr, 1));
  ASSERT_CUDA(cuGraphAddDependencies(graph, &last, &host_node, nullptr, 1));
  EXPECT_EQ(cuGraphAddDependencies(graph, &last, &host_node, nullptr, 1), CUDA_ERROR_INVALID_VALUE);

  std::size_t roots = 0;
  ASSERT_CUDA(cuGraphGetRootNodes(graph, nullptr, &roots));
  EXPECT_EQ(roots, 1u);
  CUgraphNodeType type{};
  ASSERT_CUDA(cuGraphNodeGetType(copy_node, &type));
  EXPECT_EQ(type, CU_GRAPH_NODE_TYPE_MEMCPY);
  CUDA_MEMSET_NODE_PARAMS told{};
  ASSERT_CUDA(cuGraphMemsetNodeGetParams(last, &told));
  EXPECT_EQ(told.value, 2u);

  CUgraph outer = nullptr;
  CUgraphNode child = nullptr;
  ASSERT_CUDA(cuGraphCreate(&outer, 0));
  ASSERT_CUDA(cuGraphAddChildGraphNode(&child, outer, nullptr, 0, graph));
  ASSERT_CUDA(cuGraphDestroy(graph));
  ASSERT_CUDA(cuGraphLaunch(instantiate(outer), nullptr));
  ASSERT_CUDA(cuCtxSynchronize());
  EXPECT_EQ(seen, "host ");
  EXPECT_EQ(byte_at(address), 2);
  EXPECT_EQ(byte_at(address + 3), 1);
}

TEST_F(VirtualGraphs, CirclesAreRefused) {
  CUgraph graph = nullptr;
  CUgraphNode nodes[2] = {};
  ASSERT_CUDA(cuGraphCreate(&graph, 0));
  ASSERT_CUDA(cuGraphAddEmptyNode(&nodes[0], graph, nullptr, 0));
  ASSERT_CUDA(cuGraphAddEmptyNode(&nodes[1], graph, &nodes[0], 1));
  ASSERT_CUDA(cuGraphAddDependencies(graph, &nodes[1], &nodes[0], nullptr, 1));
  CUgraphExec executable = nullptr;
  EXPECT_EQ(cuGraphInstantiate(&executable, graph, 0), CUDA_ERROR_INVALID_VALUE);
  ASSERT_CUDA(cuGraphDestroyNode(nodes[1]));
  EXPECT_CUDA(cuGraphInstantiate(&executable, graph, 0));
  EXPECT_EQ(cuGraphDestroyNode(nodes[1]), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(VirtualGraphs, EventNodesOrderStreamsOutsideTheGraph) {
  const CUstream inside = create_stream(CU_STREAM_NON_BLOCKING), outside = create_stream(CU_STREAM_NON_BLOCKING);
  const CUevent event = create_event();
  const CUdeviceptr address = allocate(1);
  CUgraph graph = nullptr;
  CUgraphNode set_node = nullptr, record = nullptr;
  CUDA_MEMSET_NODE_PARAMS set = set_of(address, 3, 1);
  ASSERT_CUDA(cuGraphCreate(&graph, 0));
  ASSERT_CUDA(cuGraphAddMemsetNode(&set_node, graph, nullptr, 0, &set, context_));
  ASSERT_CUDA(cuGraphAddEventRecordNode(&record, graph, &set_node, 1, event));
  const CUgraphExec executable = instantiate(graph);
  {
    Gate gate(inside);
    ASSERT_CUDA(cuGraphLaunch(executable, inside));
    ASSERT_CUDA(cuStreamWaitEvent(outside, event, 0));
    ASSERT_CUDA(cuMemsetD8Async(address, 4, 1, outside));
    EXPECT_EQ(cuEventQuery(event), CUDA_ERROR_NOT_READY);
  }
  ASSERT_CUDA(cuStreamSynchronize(outside));
  EXPECT_EQ(byte_at(address), 4);
}

TEST_F(VirtualGraphs, ALaunchOverFreedMemoryIsRefused) {
  const CUstream stream = create_stream();
  const CUdeviceptr address = allocate(100);
  CUgraph graph = nullptr;
  ASSERT_CUDA(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  ASSERT_CUDA(cuMemsetD8Async(address, 5, 100, stream));
  ASSERT_CUDA(cuStreamEndCapture(stream, &graph));
  const CUgraphExec executable = instantiate(graph);
  ASSERT_CUDA(cuGraphLaunch(executable, stream));
  ASSERT_CUDA(cuMemFree(address));
  EXPECT_EQ(cuGraphLaunch(executable, stream), CUDA_ERROR_ILLEGAL_ADDRESS);
}

}  // namespace
}  // namespace faultline::vgpu
