#include <cstdio>
#include <cstdlib>
#include <unistd.h>
#include <chrono>
#include <cuda_runtime.h>
__global__ void strayed(int* p) { p[(1ull << 40) / 4 + threadIdx.x] = 1; }
int main(int c, char** v) {
  int *p, h = 0; cudaMalloc(&p, 4096); cudaMemset(p, 0, 4096); cudaDeviceSynchronize();
  auto t0 = std::chrono::steady_clock::now();
  auto ms = [&] { return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - t0).count(); };
  strayed<<<1, 32>>>(p);
  int a = cudaGetLastError(); double t1 = ms();
  int b = cudaMemcpy(&h, p, 4, cudaMemcpyDeviceToHost); double t2 = ms();
  printf("launch %d (%.1f ms) copy %d (%.1f ms)\n", a, t1, b, t2); fflush(stdout);
  for (int i = 0; i < 60; i++) { usleep(50000); int s = cudaDeviceSynchronize(); printf("%.0f ms sync %d; ", ms(), s); fflush(stdout); }
  puts("end"); return 0; }
