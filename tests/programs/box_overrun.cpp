// A box of 2 layers of 3 rows of 100 bytes, packed at its source; at its destination rows are 128 bytes apart and layers 8 rows. Its last byte there is number (8 + 2) * 128 + 100.
#include <vector>

#include "driver_program.h"

int main(int, char** arguments) {
  begin();
  const std::vector<char> host(2 * 3 * 128);
  CUdeviceptr room = take(static_cast<size_t>(std::atoi(arguments[1])));
  CUDA_MEMCPY3D box{};
  box.srcMemoryType = CU_MEMORYTYPE_HOST;
  box.srcHost = host.data();
  box.srcPitch = 128;
  box.srcHeight = 3;
  box.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  box.dstDevice = room;
  box.dstPitch = 128;
  box.dstHeight = 8;
  box.WidthInBytes = 100;
  box.Height = 3;
  box.Depth = 2;
  (void)cuMemcpy3D(&box);  // the bug, where there is less than 1,380 bytes of room
  CHECK(cuMemFree(room));
  return 0;
}
