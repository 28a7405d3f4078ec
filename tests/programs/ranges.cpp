#include <nvtx3/nvToolsExt.h>

#include "driver_program.h"

int main() {
  begin();
  nvtxRangePushA("loading");
  CUdeviceptr pointer = take(4096);
  nvtxRangePop();
  CHECK(cuMemFree(pointer));
  return 0;
}
