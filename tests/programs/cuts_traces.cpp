// Cuts every file in the folder of its own recording to nothing while it goes on working, and then removes them.
#include <unistd.h>

#include <filesystem>
#include <system_error>

#include "driver_program.h"

int main() {
  begin();
  CUdeviceptr memory = take(4096);
  const char* folder = std::getenv("FAULTLINE_RUN_FOLDER");
  for (int round = 0; round < 120000; ++round) {
    CHECK(cuMemsetD8(memory, 1, 64 + round % 1000));
    if (folder == nullptr || round % 10000 != 9999) continue;
    std::error_code problem;
    for (const auto& entry : std::filesystem::directory_iterator(folder, problem)) {
      if (round < 80000) std::filesystem::resize_file(entry.path(), 0, problem);
      else std::filesystem::remove(entry.path(), problem);
    }
  }
  CHECK(cuMemFree(memory));
  std::puts("done");
  return 3;
}
