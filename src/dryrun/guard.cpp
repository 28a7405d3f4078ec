// What PyTorch's C++ is told of the GPUs: how many there are, and which one a thread has chosen. No locks and no Python: autograd's threads ask too.
#include <algorithm>
#include <atomic>

#include "dryrun/dryrun.h"

namespace {

constexpr std::uint64_t kCuda = 1;  // c10::DeviceType::CUDA

std::atomic<std::int32_t> device_count{1};
thread_local std::uint8_t current_device = 0;

faultline_guard_answer default_stream_of(std::uint8_t index) { return {kCuda | std::uint64_t{index} << 8, 0}; }

}  // namespace

extern "C" {

uint64_t faultline_answer_0(void) { return 0; }
uint64_t faultline_answer_1(void) { return 1; }

void faultline_set_device_count(int32_t count) { device_count = std::clamp(count, 1, 127); }
int32_t faultline_device_count(const void*) { return device_count; }
int32_t faultline_current_device(void) { return current_device; }
void faultline_make_current(int32_t index) { current_device = static_cast<std::uint8_t>(index); }

faultline_guard_answer faultline_guard_current(const void*) { return default_stream_of(current_device); }

faultline_guard_answer faultline_guard_exchange(const void*, uint16_t device) {
  const faultline_guard_answer former = default_stream_of(current_device);
  current_device = static_cast<std::uint8_t>(device >> 8);
  return former;
}

faultline_guard_answer faultline_guard_stream(const void*, uint16_t device) {
  return default_stream_of(static_cast<std::uint8_t>(device >> 8));
}

}  // extern "C"
