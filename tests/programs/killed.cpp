// Makes many calls, says after each round how many are done, and is killed meanwhile.
#include "driver_program.h"

int main() {
  begin();
  for (long round = 1;; ++round) {
    CUdeviceptr pointer = take(4096);
    CHECK(cuMemFree(pointer));
    std::printf("%ld\n", round);
    std::fflush(stdout);
  }
}
