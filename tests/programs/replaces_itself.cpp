// Uses the driver, then becomes another program (itself, once more) that uses it too.
#include <unistd.h>

#include "driver_program.h"

int main(int count, char** words) {
  begin();
  CUdeviceptr pointer = take(4096);
  CHECK(cuMemFree(pointer));
  if (count > 1) return 0;
  char again[] = "again";
  char* arguments[] = {words[0], again, nullptr};
  execv("/proc/self/exe", arguments);
  return 9;
}
