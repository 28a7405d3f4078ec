// Asks the driver for what a virtual GPU does not have, and goes on: as a program on the CUDA runtime does ("tables"), or one that launches kernels.
#include <string>

#include "driver_program.h"

int main(int count, char** words) {
  begin();
  const CUdeviceptr memory = take(1 << 20);
  const std::string what = count > 1 ? words[1] : "";
  if (what == "tables") {
    const void* table = nullptr;
    CUuuid id{};
    if (cuGetExportTable(&table, &id) == CUDA_SUCCESS) return 5;
  } else if (what == "arrays") {
    CUDA_ARRAY_DESCRIPTOR shape{16, 16, CU_AD_FORMAT_FLOAT, 1};
    CUarray array;
    if (cuArrayCreate(&array, &shape) == CUDA_SUCCESS) return 5;
  }
  CHECK(cuMemFree(memory));
  return 0;
}
