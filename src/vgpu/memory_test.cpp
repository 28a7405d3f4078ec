#include <set>
#include <thread>

#include "vgpu/vgpu_test_support.h"

namespace faultline::vgpu {
namespace {

using VirtualMemoryOfDevice = VirtualGpu;

TEST_F(VirtualMemoryOfDevice, CapacityIsEnforced) {
  CUdeviceptr address = 0, other = 0;
  EXPECT_EQ(cuMemAlloc(&address, kTestCapacity + 1), CUDA_ERROR_OUT_OF_MEMORY);
  ASSERT_CUDA(cuMemAlloc(&address, kTestCapacity));
  EXPECT_EQ(free_bytes(), 0u);
  EXPECT_EQ(cuMemAlloc(&other, 1), CUDA_ERROR_OUT_OF_MEMORY);
  ASSERT_CUDA(cuMemFree(address));
  EXPECT_EQ(free_bytes(), kTestCapacity);
}

TEST_F(VirtualMemoryOfDevice, SmallAllocationsShareBlocksOfTwoMiB) {
  std::vector<CUdeviceptr> addresses;
  for (int at = 0; at < 100; ++at) addresses.push_back(allocate(1000));
  EXPECT_EQ(free_bytes(), kTestCapacity - 2 * kMiB);
  for (const CUdeviceptr address : addresses) EXPECT_EQ(address % 512, 0u);
  EXPECT_EQ(std::set(addresses.begin(), addresses.end()).size(), addresses.size());
  const CUdeviceptr large = allocate(2 * kMiB + 1);
  EXPECT_EQ(free_bytes(), kTestCapacity - 6 * kMiB);
  EXPECT_CUDA(cuMemFree(large));
  for (const CUdeviceptr address : addresses) EXPECT_CUDA(cuMemFree(address));
  EXPECT_EQ(free_bytes(), kTestCapacity);
}

TEST_F(VirtualMemoryOfDevice, BadFreesAreRefused) {
  const CUdeviceptr address = allocate(1000);
  EXPECT_EQ(cuMemFree(address + 512), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemFree(0x1234), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CUDA(cuMemFree(address));
  EXPECT_EQ(cuMemFree(address), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CUDA(cuMemFree(0));
  std::uint8_t* const pinned = allocate_pinned(100);
  EXPECT_EQ(cuMemFree(reinterpret_cast<CUdeviceptr>(pinned)), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CUDA(cuMemFreeHost(pinned));
  EXPECT_EQ(cuMemFreeHost(pinned), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(VirtualMemoryOfDevice, FreedAddressesAreNotGivenOutAgainAtOnce) {
  std::set<CUdeviceptr> seen;
  for (int at = 0; at < 200; ++at) {
    const CUdeviceptr small = allocate(700), large = allocate(3 * kMiB);
    EXPECT_TRUE(seen.insert(small).second && seen.insert(large).second);
    EXPECT_CUDA(cuMemFree(small));
    EXPECT_CUDA(cuMemFree(large));
  }
}

TEST_F(VirtualMemoryOfDevice, HostCannotTouchDeviceAddresses) {
  const CUdeviceptr address = allocate(100);
  GTEST_FLAG_SET(death_test_style, "fast");
  EXPECT_DEATH(*reinterpret_cast<volatile char*>(address) = 1, "");
}

TEST_F(VirtualMemoryOfDevice, CopiesBringBytesThereAndBack) {
  const std::vector<std::uint8_t> bytes = counting_bytes(5 * kMiB + 3);
  std::vector<std::uint8_t> back(bytes.size());
  const CUdeviceptr first = allocate(bytes.size()), second = allocate(bytes.size());
  ASSERT_CUDA(cuMemcpyHtoD(first, bytes.data(), bytes.size()));
  ASSERT_CUDA(cuMemcpyDtoD(second, first, bytes.size()));
  ASSERT_CUDA(cuMemcpy(reinterpret_cast<CUdeviceptr>(back.data()), second, back.size()));
  EXPECT_EQ(bytes, back);
}

TEST_F(VirtualMemoryOfDevice, CopiesThatLeaveTheirAllocationMoveNothing) {
  std::vector<std::uint8_t> bytes(2000, 9);
  const CUdeviceptr address = allocate(1000), next = allocate(1000);
  ASSERT_CUDA(cuMemsetD8(address, 1, 1000));
  EXPECT_EQ(cuMemcpyHtoD(address, bytes.data(), 1001), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemcpyHtoD(address + 999, bytes.data(), 2), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemcpyDtoH(bytes.data(), address, 1500), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemcpyDtoDAsync(next, address, 1001, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemsetD8(address, 2, 1001), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemsetD32(address, 2, 251), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemcpyHtoD(reinterpret_cast<CUdeviceptr>(bytes.data()), bytes.data(), 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(byte_at(address), 1);
  EXPECT_EQ(bytes, std::vector<std::uint8_t>(2000, 9));
  ASSERT_CUDA(cuMemFree(address));
  EXPECT_EQ(cuMemcpyHtoD(address, bytes.data(), 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CUDA(cuMemcpyHtoD(next, bytes.data(), 0));
}

TEST_F(VirtualMemoryOfDevice, SetsOfAllWidthsFillWhatTheySay) {
  const CUdeviceptr address = allocate(16);
  std::uint32_t words[4] = {};
  ASSERT_CUDA(cuMemsetD32(address, 0x01020304, 4));
  ASSERT_CUDA(cuMemsetD16(address + 4, 0xabcd, 2));
  ASSERT_CUDA(cuMemsetD8(address + 8, 0x77, 4));
  ASSERT_CUDA(cuMemcpyDtoH(words, address, 16));
  EXPECT_EQ(words[0], 0x01020304u);
  EXPECT_EQ(words[1], 0xabcdabcdu);
  EXPECT_EQ(words[2], 0x77777777u);
  EXPECT_EQ(words[3], 0x01020304u);
  EXPECT_EQ(cuMemsetD32(address + 1, 0, 1), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(VirtualMemoryOfDevice, CopiesOfBoxesKeepRowsAndSlices) {
  CUdeviceptr address = 0;
  std::size_t pitch = 0;
  ASSERT_CUDA(cuMemAllocPitch(&address, &pitch, 30, 4, 4));
  EXPECT_EQ(pitch % 512, 0u);
  const std::vector<std::uint8_t> rows = counting_bytes(30 * 4);
  CUDA_MEMCPY2D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = rows.data();
  copy.srcPitch = 30;
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = address;
  copy.dstPitch = pitch;
  copy.WidthInBytes = 30;
  copy.Height = 4;
  ASSERT_CUDA(cuMemcpy2D(&copy));
  EXPECT_EQ(byte_at(address + 2 * pitch + 5), rows[2 * 30 + 5]);
  copy.Height = 5;
  EXPECT_EQ(cuMemcpy2D(&copy), CUDA_ERROR_INVALID_VALUE);

  // A box of 2 x 2 x 2 out of the middle, packed.
  std::vector<std::uint8_t> cube = counting_bytes(4 * 4 * 4);
  const CUdeviceptr packed = allocate(8);
  CUDA_MEMCPY3D box{};
  box.srcMemoryType = CU_MEMORYTYPE_HOST;
  box.srcHost = cube.data();
  box.srcPitch = box.srcHeight = 4;
  box.srcXInBytes = box.srcY = box.srcZ = 1;
  box.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  box.dstDevice = packed;
  box.dstPitch = box.dstHeight = 2;
  box.WidthInBytes = box.Height = box.Depth = 2;
  ASSERT_CUDA(cuMemcpy3D(&box));
  EXPECT_EQ(byte_at(packed), cube[1 * 16 + 1 * 4 + 1]);
  EXPECT_EQ(byte_at(packed + 7), cube[2 * 16 + 2 * 4 + 2]);
  box.Depth = 3;
  EXPECT_EQ(cuMemcpy3D(&box), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(VirtualMemoryOfDevice, CopiesReachTheOtherDevice) {
  CUcontext other = nullptr;
  const CUdeviceptr here = allocate(100);
  ASSERT_CUDA(cuMemsetD8(here, 5, 100));
  ASSERT_CUDA(cuCtxCreate(&other, nullptr, 0, 1));
  const CUdeviceptr there = allocate(100);
  ASSERT_CUDA(cuMemcpyPeer(there, other, here, context_, 100));
  EXPECT_EQ(byte_at(there + 99), 5);
  ASSERT_CUDA(cuCtxDestroy(other));
}

TEST_F(VirtualMemoryOfDevice, PointersAreDescribed) {
  const CUdeviceptr address = allocate(1000);
  unsigned type = 0;
  CUdeviceptr base = 0;
  std::size_t size = 0;
  int device = -1;
  CUcontext owner = nullptr;
  ASSERT_CUDA(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address + 10));
  EXPECT_EQ(type, unsigned{CU_MEMORYTYPE_DEVICE});
  ASSERT_CUDA(cuMemGetAddressRange(&base, &size, address + 10));
  EXPECT_EQ(base, address);
  EXPECT_EQ(size, 1000u);
  CUpointer_attribute attributes[] = {CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_CONTEXT};
  void* places[] = {&device, &owner};
  ASSERT_CUDA(cuPointerGetAttributes(2, attributes, places, address));
  EXPECT_EQ(device, 0);
  EXPECT_EQ(owner, context_);
  ASSERT_CUDA(cuPointerGetAttributes(2, attributes, places, reinterpret_cast<CUdeviceptr>(&type)));
  EXPECT_EQ(owner, nullptr);
  EXPECT_EQ(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, reinterpret_cast<CUdeviceptr>(&type)),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemGetAddressRange(&base, &size, 1), CUDA_ERROR_NOT_FOUND);
}

TEST_F(VirtualMemoryOfDevice, HostMemoryCanBeRegisteredOnce) {
  std::vector<std::uint8_t> bytes(8192);
  ASSERT_CUDA(cuMemHostRegister(bytes.data(), bytes.size(), 0));
  EXPECT_EQ(cuMemHostRegister(bytes.data() + 100, 100, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  CUdeviceptr address = 0;
  ASSERT_CUDA(cuMemHostGetDevicePointer(&address, bytes.data(), 0));
  ASSERT_CUDA(cuMemsetD8(address, 3, bytes.size()));
  EXPECT_EQ(bytes.back(), 3);
  ASSERT_CUDA(cuMemHostUnregister(bytes.data()));
  EXPECT_EQ(cuMemHostUnregister(bytes.data()), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
}

TEST_F(VirtualMemoryOfDevice, ManagedMemoryIsTheHostsToo) {
  CUdeviceptr address = 0;
  ASSERT_CUDA(cuMemAllocManaged(&address, 100, CU_MEM_ATTACH_GLOBAL));
  ASSERT_CUDA(cuMemsetD8(address, 4, 100));
  ASSERT_CUDA(cuCtxSynchronize());
  EXPECT_EQ(*reinterpret_cast<std::uint8_t*>(address + 99), 4);
  EXPECT_CUDA(cuMemFree(address));
}

TEST_F(VirtualMemoryOfDevice, ManyThreadsAllocateCopyAndFree) {
  std::vector<std::thread> threads;
  for (int number = 0; number < 8; ++number) {
    threads.emplace_back([this, number] {
      EXPECT_CUDA(cuCtxSetCurrent(context_));
      CUstream stream = create_stream(number % 2 == 0 ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING);
      for (int round = 0; round < 50; ++round) {
        const std::size_t size = static_cast<std::size_t>(number * 1000 + round * 37 + 1);
        const std::vector<std::uint8_t> bytes(size, static_cast<std::uint8_t>(number + 1));
        std::vector<std::uint8_t> back(size);
        const CUdeviceptr address = allocate(size);
        EXPECT_CUDA(cuMemcpyHtoDAsync(address, bytes.data(), size, stream));
        EXPECT_CUDA(cuMemcpyDtoHAsync(back.data(), address, size, stream));
        EXPECT_CUDA(cuStreamSynchronize(stream));
        EXPECT_EQ(bytes, back);
        EXPECT_CUDA(cuMemFree(address));
      }
      EXPECT_CUDA(cuStreamDestroy(stream));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(free_bytes(), kTestCapacity);
}

}  // namespace
}  // namespace faultline::vgpu
