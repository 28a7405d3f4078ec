// An NVTX range around its work, and, with an argument, so many more, each with a name of its own.
#include <nvtx3/nvToolsExt.h>

#include <string>

#include "driver_program.h"

int main(int count, char** arguments) {
  begin();
  nvtxRangePushA("loading");
  CUdeviceptr pointer = take(4096);
  nvtxRangePop();
  for (long number = count > 1 ? std::stol(arguments[1]) : 0; number > 0; --number) {
    nvtxRangePushA(("range " + std::to_string(number)).c_str());
    nvtxRangePop();
  }
  CHECK(cuMemFree(pointer));
  return 0;
}
