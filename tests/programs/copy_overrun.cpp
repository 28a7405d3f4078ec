#include <vector>

#include "driver_program.h"

int main() {
  begin();
  std::vector<char> host(64 << 10);
  CUdeviceptr values = take(60 << 10);
  const CUresult refused = cuMemcpyHtoD(values, host.data(), host.size());  // the bug: 4 KiB too many
  CHECK(cuMemFree(values));
  return refused == CUDA_ERROR_INVALID_VALUE ? 0 : 5;
}
