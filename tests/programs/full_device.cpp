#include <vector>

#include "driver_program.h"

int main() {
  begin();
  std::vector<CUdeviceptr> blocks;
  CUdeviceptr pointer = 0;
  CUresult result = CUDA_SUCCESS;
  while ((result = cuMemAlloc(&pointer, 256 << 20)) == CUDA_SUCCESS) blocks.push_back(pointer);  // the bug: it never stops asking
  for (CUdeviceptr block : blocks) CHECK(cuMemFree(block));
  return result == CUDA_ERROR_OUT_OF_MEMORY ? 7 : 5;
}
