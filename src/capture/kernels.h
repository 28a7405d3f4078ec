// What is known of a kernel by its handle: its name, and where its parameters lie. Asked of the driver once.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "driver/functions.h"
#include "trace/event.h"

namespace faultline::capture {

class ThreadRecorder;

struct KernelParameter {
  std::uint32_t offset_bytes = 0;
  std::uint32_t size_bytes = 0;
};

struct Kernel {
  StringId name;
  std::vector<KernelParameter> parameters;
};

// A thread's own memory of kernels it has launched: direct-mapped, so that a launch takes no lock.
struct KernelCache {
  struct Slot {
    CUfunction handle = nullptr;
    const Kernel* kernel = nullptr;
    std::uint32_t epoch = 0;
  };
  std::array<Slot, 1024> slots;
};

class Kernels {
 public:
  // `handle` may be a CUfunction or a CUkernel, as the driver allows. The kernel stays valid for the process's life.
  const Kernel& of(ThreadRecorder& thread, CUfunction handle);
  // Handles may be used again for other kernels from now on.
  void forget();

 private:
  const Kernel* ask_driver(ThreadRecorder& thread, CUfunction handle);

  std::mutex lock_;
  std::unordered_map<CUfunction, const Kernel*> known_;
  std::atomic<std::uint32_t> met_{0};
  std::atomic<std::uint32_t> epoch_{1};
};

}  // namespace faultline::capture
