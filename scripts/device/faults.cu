// Faults of every kind, one each: faults KIND. One kernel, then a synchronous copy, a synchronisation and a free, with the numbers that they return.
//
//   nvcc -g -lineinfo -arch=native -o faults faults.cu
#include <cassert>
#include <cstdio>
#include <cstring>
#include <cuda_runtime.h>

constexpr int kCount = 4096;

__global__ void checked(float* values, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  assert(i < count - 1);  // fault: assert
  values[i] = 1;
}

__global__ void packed(float* values) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  *reinterpret_cast<double*>(reinterpret_cast<char*>(values) + 12 * (i % 1024)) = i;  // fault: misaligned
}

__global__ void strayed(float* values, size_t offset) {
  values[offset + threadIdx.x] = 1;  // fault: illegal
}

__global__ void shared_overrun(float* values, int beyond) {
  extern __shared__ float room[];
  volatile float* at = room;
  at[threadIdx.x + beyond] = 1;  // fault: shared
  values[threadIdx.x] = at[threadIdx.x];
}

__global__ void trapped(float* values) {
  values[threadIdx.x] = 1;
  if (threadIdx.x == 3) asm("trap;");  // fault: trap
}

__global__ void before_start(const float* values, float* out, long offset) {
  out[threadIdx.x] = values[static_cast<long>(threadIdx.x) - offset];  // fault: managed
}

__global__ void well(float* values) { values[threadIdx.x] = 1; }

int main(int count, char** arguments) {
  const char* kind = count > 1 ? arguments[1] : "";
  float *values = nullptr, *managed = nullptr;
  static float back[kCount];
  if (cudaMalloc(&values, sizeof back) != cudaSuccess || cudaMemset(values, 0, sizeof back) != cudaSuccess || cudaDeviceSynchronize() != cudaSuccess) return 2;
  if (std::strcmp(kind, "managed") == 0 && cudaMallocManaged(&managed, sizeof back) != cudaSuccess) return 2;
  if (std::strcmp(kind, "assert") == 0) checked<<<kCount / 128, 128>>>(values, kCount);
  else if (std::strcmp(kind, "misaligned") == 0) packed<<<8, 128>>>(values);
  else if (std::strcmp(kind, "illegal") == 0) strayed<<<1, 32>>>(values, size_t{1} << 38);
  else if (std::strcmp(kind, "shared") == 0) shared_overrun<<<1, 32, 4096>>>(values, 1 << 20);
  else if (std::strcmp(kind, "trap") == 0) trapped<<<1, 32>>>(values);
  else if (std::strcmp(kind, "managed") == 0) before_start<<<1, 32>>>(managed, values, 1l << 30);
  else well<<<1, 32>>>(values);
  const int launch = cudaGetLastError();
  const int copy = cudaMemcpy(back, values, sizeof back, cudaMemcpyDeviceToHost);
  const int sync = cudaDeviceSynchronize();
  const int freed = cudaFree(values);
  double sum = 0;
  for (const float value : back) sum += value;
  std::printf("launch %d copy %d sync %d free %d sum %g\n", launch, copy, sync, freed, sum);
  std::fprintf(stderr, "%s\n", cudaGetErrorString(static_cast<cudaError_t>(sync)));
  return sync == 0 ? 0 : 1;
}
