// Memory of every kind, streams, events, copies, sets and a graph, all used as they should be.
#include <cstring>
#include <thread>
#include <vector>

#include "driver_program.h"

static void work(CUcontext context) {
  constexpr size_t kBytes = 1 << 20;
  CHECK(cuCtxSetCurrent(context));
  CUstream stream;
  CUevent done;
  CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CHECK(cuEventCreate(&done, CU_EVENT_DEFAULT));
  void* host = nullptr;
  CHECK(cuMemAllocHost(&host, kBytes));
  std::memset(host, 7, kBytes);
  CUdeviceptr plain = take(kBytes), managed = 0, pooled = 0, pitched = 0;
  size_t pitch = 0;
  CHECK(cuMemAllocManaged(&managed, kBytes, CU_MEM_ATTACH_GLOBAL));
  CHECK(cuMemAllocPitch(&pitched, &pitch, 1000, 64, 4));
  CHECK(cuMemAllocAsync(&pooled, kBytes, stream));
  CHECK(cuMemcpyHtoDAsync(pooled, host, kBytes, stream));
  CHECK(cuMemcpyDtoDAsync(plain, pooled, kBytes, stream));
  CHECK(cuMemsetD32Async(managed, 1, kBytes / 4, stream));
  CHECK(cuMemsetD2D8(pitched, pitch, 3, 1000, 64));
  CHECK(cuEventRecord(done, stream));
  CHECK(cuStreamWaitEvent(CU_STREAM_PER_THREAD, done, 0));
  CHECK(cuMemFreeAsync(pooled, stream));
  CHECK(cuStreamSynchronize(stream));
  std::vector<char> back(kBytes);
  CHECK(cuMemcpyDtoH(back.data(), plain, kBytes));
  if (back[kBytes - 1] != 7) std::exit(6);
  std::vector<char> mine(8192);
  CHECK(cuMemHostRegister(mine.data(), mine.size(), 0));
  CHECK(cuMemHostUnregister(mine.data()));
  CHECK(cuMemFree(plain));
  CHECK(cuMemFree(managed));
  CHECK(cuMemFree(pitched));
  CHECK(cuMemFreeHost(host));
  CHECK(cuEventDestroy(done));
  CHECK(cuStreamDestroy(stream));
}

int main(int count, char**) {
  CUcontext context = begin();
  std::vector<std::thread> threads;
  for (int more = 0; more < (count > 1 ? 64 : 2); ++more) threads.emplace_back(work, context);
  work(context);
  for (std::thread& thread : threads) thread.join();
  return 0;
}
