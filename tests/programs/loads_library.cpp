// One thread loads a library whose start waits for a lock; the other has that lock, and lets it go after calls of the driver that it never made before. A recorder that waits for the
// loader in these calls waits for ever.
#include <dlfcn.h>

#include <atomic>
#include <mutex>
#include <string>
#include <thread>

#include "driver_program.h"

static std::mutex lock;
static std::atomic<bool> is_starting{false};

static void library_starts() {
  is_starting = true;
  const std::lock_guard hold(lock);
  int version = 0;
  CHECK(cuDriverGetVersion(&version));
}

__attribute__((noinline)) static void first_time(CUcontext context) {
  CHECK(cuCtxSetCurrent(context));
  CUdeviceptr memory = take(1 << 20);
  CHECK(cuMemsetD16(memory, 1, 100));
  CHECK(cuMemFree(memory));
}

int main(int, char** arguments) {
  CUcontext context = begin();
  CUdeviceptr before = take(4096);
  CHECK(cuMemsetD8(before, 1, 100));  // the virtual driver starts its own thread with the first work, and asks the loader then
  CHECK(cuMemFree(before));
  char address[32];
  std::snprintf(address, sizeof address, "%llx", static_cast<unsigned long long>(reinterpret_cast<std::uintptr_t>(&library_starts)));
  setenv("LIBRARY_STARTS", address, 1);
  std::unique_lock hold(lock);
  std::thread loads([&] {
    if (dlopen(arguments[1], RTLD_NOW) == nullptr) std::exit(5);
  });
  while (!is_starting) std::this_thread::yield();
  std::thread(first_time, context).join();  // a thread of which nothing is known yet
  first_time(context);
  hold.unlock();
  loads.join();
  std::puts("loaded");
  return 0;
}
