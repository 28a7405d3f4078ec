// A program of the CUDA driver interface with two slips: it counts the last batch in full although it is smaller, and frees a buffer twice.
//
//   g++ -g -I<cuda include> -o driver_copy driver_copy.cpp -lcuda
//   faultline run --gpu virtual -- ./driver_copy
#include <cuda.h>

#include <cstdio>
#include <vector>

constexpr size_t kBatchBytes = 1 << 20;

CUdeviceptr take(size_t bytes) {
  CUdeviceptr buffer = 0;
  cuMemAlloc(&buffer, bytes);
  return buffer;
}

int main() {
  CUdevice device;
  CUcontext context;
  if (cuInit(0) != CUDA_SUCCESS || cuDeviceGet(&device, 0) != CUDA_SUCCESS) return 2;
  cuDevicePrimaryCtxRetain(&context, device);
  cuCtxSetCurrent(context);

  const std::vector<char> batch(kBatchBytes);
  CUdeviceptr full = take(kBatchBytes), last = take(kBatchBytes / 3);
  for (CUdeviceptr buffer : {full, last}) {
    if (cuMemcpyHtoD(buffer, batch.data(), kBatchBytes) != CUDA_SUCCESS) std::puts("a batch was not copied");
  }
  cuMemFree(full);
  cuMemFree(last);
  return cuMemFree(full) == CUDA_SUCCESS ? 0 : 1;
}
