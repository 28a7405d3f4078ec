// So many sets (the first argument) between an allocation at the start and one at the end; with a second argument, so many threads do it at once; with a third, so
// many allocations in place of sets.
#include <string>
#include <thread>
#include <vector>

#include "driver_program.h"

static void work(CUcontext context, long rounds, bool allocates) {
  CHECK(cuCtxSetCurrent(context));
  for (long round = 0; allocates && round < rounds; ++round) CHECK(cuMemFree(take(4096)));
  if (allocates) return;
  CUdeviceptr memory = take(1 << 20);
  for (long round = 0; round < rounds; ++round) CHECK(cuMemsetD8(memory + static_cast<CUdeviceptr>(round * 7919 % 524288), 1, static_cast<size_t>(1 + round % 64)));
  CHECK(cuMemFree(memory));
}

int main(int count, char** arguments) {
  CUcontext context = begin();
  std::vector<std::thread> threads;
  for (int more = 1; more < (count > 2 ? std::stoi(arguments[2]) : 1); ++more) threads.emplace_back(work, context, std::stol(arguments[1]), count > 3);
  work(context, std::stol(arguments[1]), count > 3);
  for (std::thread& thread : threads) thread.join();
  CUdeviceptr last = take(3 << 20);
  CHECK(cuMemFree(last));
  std::puts("done");
  return 0;
}
