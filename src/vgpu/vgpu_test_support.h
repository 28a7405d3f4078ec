// What the virtual driver's tests share: two small devices, a current context, and ways to hold a stream still.
#pragma once

#include <cuda.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <future>
#include <numeric>
#include <vector>

namespace faultline::vgpu {

constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr std::size_t kTestCapacity = 256 * kMiB;

#define EXPECT_CUDA(call) EXPECT_EQ((call), CUDA_SUCCESS)
#define ASSERT_CUDA(call) ASSERT_EQ((call), CUDA_SUCCESS)

inline void describe_test_devices() {
  setenv("FAULTLINE_VGPU", "name=Test GPU,bytes=268435456,major=7,minor=5,count=2", 1);
}

class VirtualGpu : public testing::Test {
 protected:
  void SetUp() override {
    describe_test_devices();
    ASSERT_CUDA(cuInit(0));
    ASSERT_CUDA(cuDevicePrimaryCtxRetain(&context_, 0));
    ASSERT_CUDA(cuCtxSetCurrent(context_));
  }
  void TearDown() override {
    EXPECT_CUDA(cuDevicePrimaryCtxReset(0));
    EXPECT_CUDA(cuCtxSetCurrent(nullptr));
  }

  static std::size_t free_bytes() {
    std::size_t free = 0, total = 0;
    EXPECT_CUDA(cuMemGetInfo(&free, &total));
    return free;
  }
  static CUdeviceptr allocate(std::size_t size_bytes) {
    CUdeviceptr address = 0;
    EXPECT_CUDA(cuMemAlloc(&address, size_bytes));
    return address;
  }
  static std::uint8_t* allocate_pinned(std::size_t size_bytes) {
    void* pointer = nullptr;
    EXPECT_CUDA(cuMemHostAlloc(&pointer, size_bytes, 0));
    return static_cast<std::uint8_t*>(pointer);
  }
  static CUstream create_stream(unsigned flags = CU_STREAM_DEFAULT) {
    CUstream stream = nullptr;
    EXPECT_CUDA(cuStreamCreate(&stream, flags));
    return stream;
  }
  static CUevent create_event() {
    CUevent event = nullptr;
    EXPECT_CUDA(cuEventCreate(&event, CU_EVENT_DEFAULT));
    return event;
  }
  static std::uint8_t byte_at(CUdeviceptr address) {
    std::uint8_t value = 0;
    EXPECT_CUDA(cuMemcpyDtoH(&value, address, 1));
    return value;
  }

  CUcontext context_ = nullptr;
};

// Holds a stream where it was put until opened.
class Gate {
 public:
  explicit Gate(CUstream stream) { EXPECT_CUDA(cuLaunchHostFunc(stream, &wait, this)); }
  ~Gate() {
    open();
    passed_.get_future().wait();
  }
  void open() {
    if (!std::exchange(opened_, true)) open_.set_value();
  }

 private:
  static void wait(void* gate) {
    auto* const self = static_cast<Gate*>(gate);
    self->open_.get_future().wait();
    self->passed_.set_value();
  }
  bool opened_ = false;
  std::promise<void> open_, passed_;
};

inline std::vector<std::uint8_t> counting_bytes(std::size_t size) {
  std::vector<std::uint8_t> bytes(size);
  std::iota(bytes.begin(), bytes.end(), std::uint8_t{1});
  return bytes;
}

}  // namespace faultline::vgpu
