#include <filesystem>
#include <iterator>

#include "vgpu/vgpu_test_support.h"

namespace faultline::vgpu {
namespace {

class VirtualMappings : public VirtualGpu {
 protected:
  static constexpr std::size_t kPage = 2 * kMiB;
  static CUmemAllocationProp properties() {
    CUmemAllocationProp properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
    return properties;
  }
  static CUmemGenericAllocationHandle create(std::size_t size_bytes) {
    const CUmemAllocationProp wanted = properties();
    CUmemGenericAllocationHandle handle = 0;
    EXPECT_CUDA(cuMemCreate(&handle, size_bytes, &wanted, 0));
    return handle;
  }
  static void allow(CUdeviceptr address, std::size_t size_bytes,
                    CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE) {
    const CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, {0}}, flags};
    EXPECT_CUDA(cuMemSetAccess(address, size_bytes, &access, 1));
  }
};

TEST_F(VirtualMappings, CopiesCrossMappingsThatTouchAndStopAtTheEnd) {
  std::size_t granularity = 0;
  const CUmemAllocationProp wanted = properties();
  ASSERT_CUDA(cuMemGetAllocationGranularity(&granularity, &wanted, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  EXPECT_EQ(granularity, kPage);
  CUdeviceptr base = 0;
  ASSERT_CUDA(cuMemAddressReserve(&base, 8 * kPage, 0, 0, 0));
  const std::size_t before = free_bytes();
  const CUmemGenericAllocationHandle first = create(kPage), second = create(kPage);
  EXPECT_EQ(free_bytes(), before - 2 * kPage);
  ASSERT_CUDA(cuMemMap(base, kPage, 0, first, 0));
  EXPECT_EQ(cuMemsetD8(base, 1, 10), CUDA_ERROR_INVALID_VALUE) << "no access was given yet";
  ASSERT_CUDA(cuMemMap(base + kPage, kPage, 0, second, 0));
  EXPECT_EQ(cuMemMap(base, kPage, 0, second, 0), CUDA_ERROR_INVALID_VALUE);
  allow(base, 2 * kPage);
  ASSERT_CUDA(cuMemRelease(first));
  ASSERT_CUDA(cuMemRelease(second));

  const std::vector<std::uint8_t> bytes = counting_bytes(2 * kPage);
  std::vector<std::uint8_t> back(bytes.size());
  ASSERT_CUDA(cuMemcpyHtoD(base, bytes.data(), bytes.size()));
  ASSERT_CUDA(cuMemcpyDtoH(back.data(), base, back.size()));
  EXPECT_EQ(bytes, back);
  EXPECT_EQ(cuMemcpyDtoH(back.data(), base + 1, back.size()), CUDA_ERROR_INVALID_VALUE);

  EXPECT_EQ(cuMemAddressFree(base, 8 * kPage), CUDA_ERROR_INVALID_VALUE) << "still mapped";
  ASSERT_CUDA(cuMemUnmap(base, 2 * kPage));
  EXPECT_EQ(free_bytes(), before);
  EXPECT_EQ(cuMemcpyDtoH(back.data(), base, 1), CUDA_ERROR_INVALID_VALUE);
  ASSERT_CUDA(cuMemAddressFree(base, 8 * kPage));
}

TEST_F(VirtualMappings, OneHandleMappedTwiceIsOneMemory) {
  CUdeviceptr base = 0;
  ASSERT_CUDA(cuMemAddressReserve(&base, 2 * kPage, 0, 0, 0));
  const CUmemGenericAllocationHandle handle = create(kPage);
  ASSERT_CUDA(cuMemMap(base, kPage, 0, handle, 0));
  ASSERT_CUDA(cuMemMap(base + kPage, kPage, 0, handle, 0));
  allow(base, kPage);
  allow(base + kPage, kPage, CU_MEM_ACCESS_FLAGS_PROT_READ);
  ASSERT_CUDA(cuMemsetD8(base, 6, kPage));
  EXPECT_EQ(byte_at(base + kPage), 6);
  EXPECT_EQ(cuMemsetD8(base + kPage, 1, 1), CUDA_ERROR_INVALID_VALUE) << "read only";
  CUmemGenericAllocationHandle retained = 0;
  ASSERT_CUDA(cuMemRetainAllocationHandle(&retained, reinterpret_cast<void*>(base + 100)));
  EXPECT_EQ(retained, handle);
  ASSERT_CUDA(cuMemUnmap(base, 2 * kPage));
  EXPECT_LT(free_bytes(), kTestCapacity);
  ASSERT_CUDA(cuMemRelease(handle));
  ASSERT_CUDA(cuMemRelease(handle));
  EXPECT_EQ(cuMemRelease(handle), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(free_bytes(), kTestCapacity);
  ASSERT_CUDA(cuMemAddressFree(base, 2 * kPage));
}

TEST_F(VirtualMappings, WrongRequestsAreRefused) {
  const CUmemAllocationProp wanted = properties();
  CUmemGenericAllocationHandle handle = 0;
  CUdeviceptr base = 0;
  EXPECT_EQ(cuMemCreate(&handle, 1000, &wanted, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemCreate(&handle, kTestCapacity + kPage, &wanted, 0), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cuMemAddressReserve(&base, 1000, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
  handle = create(kPage);
  EXPECT_EQ(cuMemMap(0x10000000, kPage, 0, handle, 0), CUDA_ERROR_INVALID_VALUE) << "not reserved";
  ASSERT_CUDA(cuMemAddressReserve(&base, kPage, 0, 0, 0));
  EXPECT_EQ(cuMemMap(base, 2 * kPage, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemUnmap(base, kPage), CUDA_ERROR_INVALID_VALUE);
  ASSERT_CUDA(cuMemRelease(handle));
  ASSERT_CUDA(cuMemAddressFree(base, kPage));
}

TEST_F(VirtualMappings, ManyHandlesTakeOneFileDescriptor) {
  const auto open_files = [] {
    const std::filesystem::directory_iterator files("/proc/self/fd");
    return std::distance(begin(files), end(files));
  };
  const auto before = open_files();
  std::vector<CUmemGenericAllocationHandle> handles;
  for (int at = 0; at < 100; ++at) handles.push_back(create(kPage));
  EXPECT_LE(open_files(), before + 1);
  for (const CUmemGenericAllocationHandle handle : handles) EXPECT_CUDA(cuMemRelease(handle));
}

}  // namespace
}  // namespace faultline::vgpu
