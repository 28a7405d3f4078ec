// A program without Python: a count of bytes is given where a count of elements is meant. Built with -DRIGHT it is the clean twin.
//
//   nvcc -g -lineinfo -o plain_cuda plain_cuda.cu
#include <cstdio>
#include <cuda_runtime.h>

__global__ void scale(float* values, float factor, size_t count) {
  const size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x;
  if (i < count) {
    values[i] *= factor;
  }
}

void scale_all(float* values, float factor, size_t count) {
  scale<<<static_cast<unsigned>((count + 255) / 256), 256>>>(values, factor, count);
}

int main() {
  const size_t count = 512 << 20;  // large: what lies just behind a smaller one is often the driver's own memory, and is written without a word
  const size_t size_bytes = count * sizeof(float);
  float* values = nullptr;
  if (cudaMalloc(&values, size_bytes) != cudaSuccess || cudaMemset(values, 0, size_bytes) != cudaSuccess) return 2;
#ifdef RIGHT
  scale_all(values, 2.0f, count);
#else
  scale_all(values, 2.0f, size_bytes);
#endif
  const cudaError_t status = cudaDeviceSynchronize();
  std::printf("%s\n", cudaGetErrorString(status));
  cudaFree(values);
  return status == cudaSuccess ? 0 : 1;
}
