#include "driver_program.h"

__attribute__((noinline)) void first_free(CUdeviceptr pointer) {
  CHECK(cuMemFree(pointer));
}

__attribute__((noinline)) CUresult second_free(CUdeviceptr pointer) {
  return cuMemFree(pointer);  // the bug
}

int main() {
  begin();
  CUdeviceptr values = take(1 << 20);
  first_free(values);
  return second_free(values) == CUDA_ERROR_INVALID_VALUE ? 0 : 5;
}
