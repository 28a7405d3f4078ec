// A graph sets memory that has been freed since it was made.
#include "driver_program.h"

int main() {
  begin();
  CUstream stream;
  CUgraph graph;
  CUgraphExec executable;
  CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CUdeviceptr values = take(1 << 20);
  CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CHECK(cuMemsetD8Async(values, 0, 1 << 20, stream));
  CHECK(cuStreamEndCapture(stream, &graph));
  CHECK(cuGraphInstantiate(&executable, graph, 0));
  CHECK(cuGraphLaunch(executable, stream));
  CHECK(cuStreamSynchronize(stream));
  CHECK(cuMemFree(values));
  CUresult result = cuGraphLaunch(executable, stream);  // the bug
  if (result == CUDA_SUCCESS) result = cuStreamSynchronize(stream);
  return result == CUDA_ERROR_ILLEGAL_ADDRESS ? 7 : 5;
}
