// Ends while another thread waits for a stream whose work never ends.
#include <atomic>
#include <chrono>
#include <thread>

#include "driver_program.h"

static void never_ends(void*) { std::this_thread::sleep_for(std::chrono::hours(1)); }

int main() {
  CUcontext context = begin();
  CUstream stream;
  CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CHECK(cuLaunchHostFunc(stream, never_ends, nullptr));
  static std::atomic<bool> waits{false};
  std::thread([=] {
    cuCtxSetCurrent(context);
    waits = true;
    cuStreamSynchronize(stream);
  }).detach();
  while (!waits) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  take(4096);
  std::exit(6);
}
