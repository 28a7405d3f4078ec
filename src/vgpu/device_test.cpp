#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <thread>

#include "vgpu/vgpu_test_support.h"

namespace faultline::vgpu {
namespace {

using VirtualDevice = VirtualGpu;

template <class Function>
Function* found(const char* name, int version, cuuint64_t flags = CU_GET_PROC_ADDRESS_DEFAULT) {
  void* function = nullptr;
  EXPECT_CUDA(cuGetProcAddress(name, &function, version, flags, nullptr));
  return reinterpret_cast<Function*>(function);
}

TEST_F(VirtualDevice, IsAsTheEnvironmentDescribesIt) {
  int count = 0, major = 0, version = 0;
  char name[64];
  std::size_t total = 0;
  ASSERT_CUDA(cuDeviceGetCount(&count));
  EXPECT_EQ(count, 2);
  ASSERT_CUDA(cuDeviceGetName(name, sizeof name, 1));
  EXPECT_STREQ(name, "Test GPU");
  ASSERT_CUDA(cuDeviceTotalMem(&total, 0));
  EXPECT_EQ(total, kTestCapacity);
  ASSERT_CUDA(cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0));
  EXPECT_EQ(major, 7);
  ASSERT_CUDA(cuDriverGetVersion(&version));
  EXPECT_EQ(version, 13000);
  CUdevice device = 0;
  EXPECT_EQ(cuDeviceGet(&device, 2), CUDA_ERROR_INVALID_DEVICE);
}

TEST_F(VirtualDevice, DevicesHaveDifferentUuidsAndBuses) {
  CUuuid first, second;
  ASSERT_CUDA(cuDeviceGetUuid(&first, 0));
  ASSERT_CUDA(cuDeviceGetUuid(&second, 1));
  EXPECT_NE(std::string(first.bytes, 16), std::string(second.bytes, 16));
  char bus[32];
  ASSERT_CUDA(cuDeviceGetPCIBusId(bus, sizeof bus, 1));
  CUdevice device = 0;
  ASSERT_CUDA(cuDeviceGetByPCIBusId(&device, bus));
  EXPECT_EQ(device, 1);
}

TEST(VirtualDriver, RefusesBeforeItIsInitialized) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        int count = 0;
        void* function = nullptr;
        const char* text = nullptr;
        const bool refuses = cuDeviceGetCount(&count) == CUDA_ERROR_NOT_INITIALIZED;
        const bool finds =
            cuGetProcAddress("cuInit", &function, 12000, 0, nullptr) == CUDA_SUCCESS && function != nullptr;
        const bool names = cuGetErrorName(CUDA_ERROR_NOT_INITIALIZED, &text) == CUDA_SUCCESS;
        std::exit(refuses && finds && names ? 7 : 1);
      },
      testing::ExitedWithCode(7), "");
}

TEST_F(VirtualDevice, GivesFunctionsByVersionAsWellAsBySymbol) {
  auto* const allocate_memory = found<CUresult(CUdeviceptr*, std::size_t)>("cuMemAlloc", 12000);
  CUdeviceptr address = 0;
  ASSERT_NE(allocate_memory, nullptr);
  ASSERT_CUDA(allocate_memory(&address, 100));
  EXPECT_CUDA(cuMemFree(address));
  void* function = nullptr;
  CUdriverProcAddressQueryResult status{};
  EXPECT_CUDA(cuGetProcAddress("cuMemAllocAsync", &function, 11000, 0, &status));
  EXPECT_EQ(status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
  EXPECT_EQ(function, nullptr);
  EXPECT_CUDA(cuGetProcAddress("cuNoSuchThing", &function, 13000, 0, &status));
  EXPECT_EQ(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
  EXPECT_EQ(cuGetProcAddress(nullptr, &function, 13000, 0, &status), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(VirtualDevice, AnswersWhatItCannotDoWithNotSupported) {
  EXPECT_EQ(cuArrayCreate(nullptr, nullptr), CUDA_ERROR_NOT_SUPPORTED);
  const void* table = nullptr;
  const CUuuid id{};
  EXPECT_EQ(cuGetExportTable(&table, &id), CUDA_ERROR_NOT_SUPPORTED);
}

TEST_F(VirtualDevice, NamesEveryErrorCode) {
  const char* text = nullptr;
  ASSERT_CUDA(cuGetErrorName(CUDA_ERROR_ILLEGAL_ADDRESS, &text));
  EXPECT_STREQ(text, "CUDA_ERROR_ILLEGAL_ADDRESS");
  ASSERT_CUDA(cuGetErrorString(CUDA_ERROR_OUT_OF_MEMORY, &text));
  EXPECT_STREQ(text, "out of memory");
  EXPECT_EQ(cuGetErrorName(static_cast<CUresult>(998), &text), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(VirtualDevice, CallsWithoutAContextAreRefused) {
  ASSERT_CUDA(cuCtxSetCurrent(nullptr));
  CUdeviceptr address = 0;
  CUstream stream = nullptr;
  EXPECT_EQ(cuMemAlloc(&address, 100), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(cuStreamCreate(&stream, 0), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_INVALID_CONTEXT);
  CUcontext current = context_;
  EXPECT_CUDA(cuCtxGetCurrent(&current));
  EXPECT_EQ(current, nullptr);
}

TEST_F(VirtualDevice, ContextsStackPerThread) {
  CUcontext made = nullptr, current = nullptr;
  ASSERT_CUDA(cuCtxCreate(&made, nullptr, 0, 1));
  ASSERT_CUDA(cuCtxGetCurrent(&current));
  EXPECT_EQ(current, made);
  std::thread([&] {
    CUcontext elsewhere = made;
    EXPECT_CUDA(cuCtxGetCurrent(&elsewhere));
    EXPECT_EQ(elsewhere, nullptr);
  }).join();
  CUdevice device = 0;
  ASSERT_CUDA(cuCtxGetDevice(&device));
  EXPECT_EQ(device, 1);
  CUcontext popped = nullptr;
  ASSERT_CUDA(cuCtxPopCurrent(&popped));
  EXPECT_EQ(popped, made);
  ASSERT_CUDA(cuCtxGetCurrent(&current));
  EXPECT_EQ(current, context_);
  EXPECT_CUDA(cuCtxDestroy(made));
  EXPECT_EQ(cuCtxPushCurrent(made), CUDA_ERROR_CONTEXT_IS_DESTROYED);
}

TEST_F(VirtualDevice, AContextTakesItsMemoryWithIt) {
  CUcontext made = nullptr;
  const std::size_t before = free_bytes();
  ASSERT_CUDA(cuCtxCreate(&made, nullptr, 0, 0));
  allocate(10 * kMiB);
  allocate(1000);
  EXPECT_EQ(free_bytes(), before - 12 * kMiB);
  ASSERT_CUDA(cuCtxDestroy(made));
  EXPECT_EQ(free_bytes(), before);
}

TEST_F(VirtualDevice, PrimaryContextLivesWhileItIsRetained) {
  unsigned flags = 0;
  int active = 0;
  CUcontext primary = nullptr;
  ASSERT_CUDA(cuDevicePrimaryCtxRetain(&primary, 1));
  ASSERT_CUDA(cuDevicePrimaryCtxGetState(1, &flags, &active));
  EXPECT_EQ(active, 1);
  ASSERT_CUDA(cuDevicePrimaryCtxRelease(1));
  ASSERT_CUDA(cuDevicePrimaryCtxGetState(1, &flags, &active));
  EXPECT_EQ(active, 0);
  EXPECT_EQ(cuDevicePrimaryCtxRelease(1), CUDA_ERROR_INVALID_CONTEXT);
}

TEST_F(VirtualDevice, LimitsAreKept) {
  std::size_t value = 0;
  ASSERT_CUDA(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 123 << 20));
  ASSERT_CUDA(cuCtxGetLimit(&value, CU_LIMIT_MALLOC_HEAP_SIZE));
  EXPECT_EQ(value, std::size_t{123} << 20);
  EXPECT_EQ(cuCtxGetLimit(&value, CU_LIMIT_MAX), CUDA_ERROR_UNSUPPORTED_LIMIT);
}

TEST_F(VirtualDevice, AForkedChildCannotUseTheDriver) {
  const CUdeviceptr address = allocate(100);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    int count = 0;
    std::uint8_t byte = 0;
    const bool refused = cuInit(0) == CUDA_ERROR_NOT_INITIALIZED &&
                         cuDeviceGetCount(&count) == CUDA_ERROR_NOT_INITIALIZED &&
                         cuMemcpyDtoH(&byte, address, 1) == CUDA_ERROR_NOT_INITIALIZED;
    _exit(refused ? 7 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7);
  EXPECT_CUDA(cuMemFree(address));
}

TEST(VirtualDriver, AProgramMayExitWithWorkInFlight) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        CUcontext context = nullptr;
        CUdeviceptr flag = 0;
        CUdeviceptr other = 0;
        CUstream stream = nullptr;
        cuInit(0);
        cuDevicePrimaryCtxRetain(&context, 0);
        cuCtxSetCurrent(context);
        cuMemAlloc(&flag, 4);
        cuMemAlloc(&other, 4);
        cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
        cuMemsetD32(flag, 0, 1);
        cuCtxSynchronize();
        cuStreamWaitValue32(stream, flag, 1, CU_STREAM_WAIT_VALUE_EQ);  // which nobody will write
        for (int at = 0; at < 100; ++at) cuMemsetD8Async(other, 1, 4, nullptr);
        std::exit(7);
      },
      testing::ExitedWithCode(7), "");
}

TEST(VirtualDriver, CallsOfDestructorsAreAnsweredWhileTheProgramExits) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        std::atexit([] {  // runs after the driver has stopped
          if (cuCtxSynchronize() == CUDA_ERROR_DEINITIALIZED) _exit(7);
        });
        cuInit(0);
        std::atexit([] {  // runs before
          CUcontext context = nullptr;
          if (cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS || cuCtxSetCurrent(context) != CUDA_SUCCESS)
            _exit(2);
          if (cuMemsetD8(0x1000, 0, 1) != CUDA_ERROR_INVALID_VALUE || cuCtxSynchronize() != CUDA_SUCCESS) _exit(3);
        });
        std::exit(1);
      },
      testing::ExitedWithCode(7), "");
}

}  // namespace
}  // namespace faultline::vgpu
