// Forks after the driver has started. The child may not use it, the parent goes on.
#include <sys/wait.h>
#include <unistd.h>

#include "driver_program.h"

int main() {
  begin();
  CUdeviceptr before = take(1 << 20);
  const pid_t child = fork();
  if (child == 0) {
    CUdeviceptr pointer = 0;
    _exit(cuMemAlloc(&pointer, 4096) == CUDA_SUCCESS ? 9 : 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(cuMemsetD8(before, 1, 1 << 20));
  CHECK(cuMemFree(before));
  return WEXITSTATUS(status);
}
