#include "vgpu/vgpu_test_support.h"

namespace faultline::vgpu {
namespace {

class VirtualPools : public VirtualGpu {
 protected:
  void SetUp() override {
    VirtualGpu::SetUp();
    ASSERT_CUDA(cuDeviceGetDefaultMemPool(&pool_, 0));
    stream_ = create_stream(CU_STREAM_NON_BLOCKING);
  }
  void TearDown() override {
    EXPECT_CUDA(cuCtxSynchronize());
    EXPECT_CUDA(cuMemPoolTrimTo(pool_, 0));
    EXPECT_EQ(free_bytes(), kTestCapacity);
    VirtualGpu::TearDown();
  }
  CUdeviceptr allocate_async(std::size_t size_bytes) {
    CUdeviceptr address = 0;
    EXPECT_CUDA(cuMemAllocAsync(&address, size_bytes, stream_));
    return address;
  }
  cuuint64_t attribute(CUmemPool_attribute which) {
    cuuint64_t value = 0;
    EXPECT_CUDA(cuMemPoolGetAttribute(pool_, which, &value));
    return value;
  }
  CUmemoryPool pool_ = nullptr;
  CUstream stream_ = nullptr;
};

TEST_F(VirtualPools, AFreeTakesEffectWhenItsStreamGetsThere) {
  const CUdeviceptr address = allocate_async(1000);
  {
    Gate gate(stream_);
    ASSERT_CUDA(cuMemFreeAsync(address, stream_));
    EXPECT_EQ(attribute(CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 1024u);
    EXPECT_CUDA(cuMemsetD8Async(address, 1, 1000, stream_));
    EXPECT_EQ(cuMemFreeAsync(address, stream_), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemFree(address), CUDA_ERROR_INVALID_VALUE);
  }
  ASSERT_CUDA(cuStreamSynchronize(stream_));
  EXPECT_EQ(attribute(CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 0u);
  EXPECT_EQ(cuMemsetD8Async(address, 1, 1, stream_), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(VirtualPools, UnusedMemoryGoesBackAtASynchronizationDownToTheThreshold) {
  const CUdeviceptr address = allocate_async(1000);
  EXPECT_EQ(attribute(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 32 * kMiB);
  EXPECT_EQ(free_bytes(), kTestCapacity - 32 * kMiB);
  cuuint64_t threshold = 64 * kMiB;
  ASSERT_CUDA(cuMemPoolSetAttribute(pool_, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
  ASSERT_CUDA(cuMemFreeAsync(address, stream_));
  ASSERT_CUDA(cuStreamSynchronize(stream_));
  EXPECT_EQ(attribute(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 32 * kMiB);
  threshold = 0;
  ASSERT_CUDA(cuMemPoolSetAttribute(pool_, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
  ASSERT_CUDA(cuStreamSynchronize(stream_));
  EXPECT_EQ(attribute(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 0u);
}

TEST_F(VirtualPools, AProgramThatRunsAheadOfItsStreamFindsMemory) {
  Gate gate(stream_);
  for (int round = 0; round < 20; ++round) {
    const CUdeviceptr address = allocate_async(200 * kMiB);
    EXPECT_CUDA(cuMemsetD8Async(address, 1, 1000, stream_));
    EXPECT_CUDA(cuMemFreeAsync(address, stream_));
  }
}

TEST_F(VirtualPools, CapacityHoldsForPoolsToo) {
  const CUdeviceptr address = allocate_async(200 * kMiB);
  CUdeviceptr other = 0;
  EXPECT_EQ(cuMemAllocAsync(&other, 100 * kMiB, stream_), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cuMemAlloc(&other, 100 * kMiB), CUDA_ERROR_OUT_OF_MEMORY);
  ASSERT_CUDA(cuMemFree(address));
}

TEST_F(VirtualPools, UnusedPoolMemoryServesOtherAllocations) {
  cuuint64_t threshold = kTestCapacity;
  ASSERT_CUDA(cuMemPoolSetAttribute(pool_, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
  ASSERT_CUDA(cuMemFreeAsync(allocate_async(200 * kMiB), stream_));
  ASSERT_CUDA(cuStreamSynchronize(stream_));
  EXPECT_LT(free_bytes(), 100 * kMiB);
  const CUdeviceptr address = allocate(200 * kMiB);
  EXPECT_CUDA(cuMemFree(address));
  threshold = 0;
  ASSERT_CUDA(cuMemPoolSetAttribute(pool_, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
}

TEST_F(VirtualPools, OwnPoolsAreBoundedAndOutliveTheirHandleWhileInUse) {
  CUmemPoolProps properties{};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  properties.maxSize = 32 * kMiB;
  CUmemoryPool own = nullptr;
  ASSERT_CUDA(cuMemPoolCreate(&own, &properties));
  CUdeviceptr address = 0, other = 0;
  ASSERT_CUDA(cuMemAllocFromPoolAsync(&address, 20 * kMiB, own, stream_));
  EXPECT_EQ(cuMemAllocFromPoolAsync(&other, 20 * kMiB, own, stream_), CUDA_ERROR_OUT_OF_MEMORY);
  CUmemoryPool from = nullptr;
  ASSERT_CUDA(cuPointerGetAttribute(&from, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, address));
  EXPECT_EQ(from, own);
  ASSERT_CUDA(cuMemPoolDestroy(own));
  EXPECT_EQ(cuMemPoolTrimTo(own, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CUDA(cuMemsetD8Async(address, 1, 20 * kMiB, stream_));
  EXPECT_CUDA(cuMemFreeAsync(address, stream_));
  EXPECT_EQ(cuMemPoolDestroy(pool_), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(VirtualPools, ADevicesCurrentPoolCanBeChanged) {
  CUmemPoolProps properties{};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  CUmemoryPool own = nullptr, current = nullptr;
  ASSERT_CUDA(cuMemPoolCreate(&own, &properties));
  ASSERT_CUDA(cuDeviceSetMemPool(0, own));
  const CUdeviceptr address = allocate_async(100);
  ASSERT_CUDA(cuPointerGetAttribute(&current, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, address));
  EXPECT_EQ(current, own);
  ASSERT_CUDA(cuMemFreeAsync(address, stream_));
  ASSERT_CUDA(cuStreamSynchronize(stream_));
  ASSERT_CUDA(cuMemPoolDestroy(own));
  ASSERT_CUDA(cuDeviceGetMemPool(&current, 0));
  EXPECT_EQ(current, pool_);
}

}  // namespace
}  // namespace faultline::vgpu
