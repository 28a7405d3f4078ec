#include <string>

#include "base/elf/small_cubin.h"
#include "vgpu/vgpu_test_support.h"

namespace faultline::vgpu {
namespace {

using VirtualModules = VirtualGpu;

constexpr const char* kPtx = R"(
.version 8.0
.target sm_80
.address_size 64
/* .entry not_a_kernel( */
.visible .func (.param .b32 result) helper(.param .b32 x) { ret; }
// .entry neither()
.visible .entry add(
	.param .u64 .ptr .global .align 16 add_param_0,
	.param .f32 add_param_1,
	.param .align 8 .b8 add_param_2[24],
	.param .u8 add_param_3
)
.maxntid 128
{
	ret;
}
.entry nothing
{
	ret;
}
)";

TEST_F(VirtualModules, KernelsOfPtxAreFoundWithTheirParameters) {
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  unsigned count = 0;
  const char* name = nullptr;
  ASSERT_CUDA(cuModuleLoadData(&module, kPtx));
  ASSERT_CUDA(cuModuleGetFunctionCount(&count, module));
  EXPECT_EQ(count, 2u);
  ASSERT_CUDA(cuModuleGetFunction(&function, module, "add"));
  EXPECT_EQ(cuModuleGetFunction(&function, module, "helper"), CUDA_ERROR_NOT_FOUND);
  ASSERT_CUDA(cuFuncGetName(&name, function));
  EXPECT_STREQ(name, "add");
  const std::size_t expected[][2] = {{0, 8}, {8, 4}, {16, 24}, {40, 1}};
  for (std::size_t at = 0; at < 4; ++at) {
    std::size_t offset = 0, size = 0;
    ASSERT_CUDA(cuFuncGetParamInfo(function, at, &offset, &size));
    EXPECT_EQ(offset, expected[at][0]);
    EXPECT_EQ(size, expected[at][1]);
  }
  std::size_t offset = 0;
  EXPECT_EQ(cuFuncGetParamInfo(function, 4, &offset, nullptr), CUDA_ERROR_INVALID_VALUE);
  ASSERT_CUDA(cuModuleUnload(module));
  EXPECT_EQ(cuFuncGetName(&name, function), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(VirtualModules, LibrariesGiveKernelsThatAreFunctions) {
  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
  CUfunction function = nullptr;
  const char* name = nullptr;
  ASSERT_CUDA(cuLibraryLoadData(&library, kPtx, nullptr, nullptr, 0, nullptr, nullptr, 0));
  ASSERT_CUDA(cuLibraryGetKernel(&kernel, library, "nothing"));
  ASSERT_CUDA(cuKernelGetFunction(&function, kernel));
  ASSERT_CUDA(cuFuncGetName(&name, function));
  EXPECT_STREQ(name, "nothing");
  ASSERT_CUDA(cuFuncGetName(&name, reinterpret_cast<CUfunction>(kernel)));
  ASSERT_CUDA(cuLibraryUnload(library));
  EXPECT_EQ(cuKernelGetFunction(&function, kernel), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(VirtualModules, KernelsOfACubinAreFoundWithTheirParameters) {
  const std::string cubin = small_cubin();
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  std::size_t offset = 0, size = 0;
  ASSERT_CUDA(cuModuleLoadData(&module, cubin.data()));
  ASSERT_CUDA(cuModuleGetFunction(&function, module, "kernel"));
  ASSERT_CUDA(cuFuncGetParamInfo(function, 1, &offset, &size));
  EXPECT_EQ(offset, 8u);
  EXPECT_EQ(size, 16u);
}

TEST_F(VirtualModules, WhatIsNoDeviceCodeIsRefused) {
  CUmodule module = nullptr;
  EXPECT_EQ(cuModuleLoadData(&module, "hello"), CUDA_ERROR_INVALID_IMAGE);
  EXPECT_EQ(cuModuleLoadData(&module, ""), CUDA_ERROR_INVALID_IMAGE);
  EXPECT_EQ(cuModuleLoad(&module, "/no/such/file"), CUDA_ERROR_FILE_NOT_FOUND);
}

TEST(VirtualDriver, LaunchesAreRefusedAndTheFirstSaysWhy) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        CUcontext context = nullptr;
        CUmodule module = nullptr;
        CUfunction function = nullptr;
        cuInit(0);
        cuDevicePrimaryCtxRetain(&context, 0);
        cuCtxSetCurrent(context);
        cuModuleLoadData(&module, kPtx);
        cuModuleGetFunction(&function, module, "add");
        const CUresult first = cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, nullptr, nullptr, nullptr);
        const CUresult second = cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, nullptr, nullptr, nullptr);
        std::exit(first == CUDA_ERROR_NOT_SUPPORTED && second == CUDA_ERROR_NOT_SUPPORTED ? 7 : 1);
      },
      testing::ExitedWithCode(7), "^faultline: the virtual GPU does not run kernels yet: add\n$");
}

}  // namespace
}  // namespace faultline::vgpu
