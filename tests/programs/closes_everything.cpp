// Closes every descriptor it did not open, as daemons do, in the middle of its work, and opens files of its own under the same numbers. They hold what it wrote, nothing else.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "driver_program.h"

static void work(int rounds) {
  CUdeviceptr memory = take(4096);
  for (int round = 0; round < rounds; ++round) CHECK(cuMemsetD8(memory, static_cast<unsigned char>(round), 64 + round % 1000));
  CHECK(cuMemFree(memory));
}

int main(int, char** arguments) {
  const std::string folder = arguments[1];
  begin();
  work(20000);
  for (int file = 3; file < 256; ++file) close(file);
  std::vector<int> files;
  for (int number = 0; number < 64; ++number) {
    files.push_back(open((folder + "/mine-" + std::to_string(number)).c_str(), O_RDWR | O_CREAT | O_TRUNC, 0644));
    if (files.back() < 0 || write(files.back(), "mine\n", 5) != 5) return 5;
  }
  work(60000);
  for (int file : files) {
    struct stat about;
    if (fstat(file, &about) != 0 || about.st_size != 5) return 6;
  }
  std::puts("mine are mine");
  return 0;
}
