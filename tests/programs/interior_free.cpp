#include "driver_program.h"

int main() {
  begin();
  CUdeviceptr values = take(1 << 20);
  const CUresult refused = cuMemFree(values + 4096);  // the bug
  CHECK(cuMemFree(values));
  return refused == CUDA_ERROR_INVALID_VALUE ? 0 : 5;
}
