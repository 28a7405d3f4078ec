#include "driver_program.h"

__attribute__((noinline)) CUdeviceptr leaked_buffer() {
  return take(1 << 20);  // the bug: nobody frees it
}

int main() {
  begin();
  for (int round = 0; round < 20; ++round) {
    const CUdeviceptr kept = leaked_buffer(), freed = take(2 << 20);
    CHECK(cuMemsetD8(kept, 0, 1 << 20));
    CHECK(cuMemFree(freed));
  }
  return 0;
}
