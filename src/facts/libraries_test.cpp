#include "facts/libraries.h"

#include "facts/facts_test_support.h"
#include "facts/stack_facts.h"

namespace faultline {
namespace {

std::string asker(const std::string& frames) {
  const Trace trace = traced("alloc 512 at " + frames);
  return library_of(trace, trace.events.at(0).stack);
}

TEST(Libraries, TheInnermostModuleThatIsNotCudasRuntimeAsked) {
  EXPECT_EQ(asker("run.py:1 main > /x/libtorch_cuda.so:0 +0x1 > /x/libcublas.so.13:0 +0x2 > /x/libcudart.so.13:0 +0x3"),
            "cuBLAS");
  EXPECT_EQ(asker("run.py:1 main > /x/libtorch_cuda.so:0 +0x1 > /x/libnccl.so.2:0 +0x2"), "NCCL");
  EXPECT_EQ(asker("run.py:1 main > /usr/lib/libfoo.so.3:0 +0x2"), "libfoo");
}

TEST(Libraries, TheUsersOwnCodeIsTheProgram) {
  EXPECT_EQ(asker("/home/ada/main.cu:3 main > /x/libcudart.so.13:0 +0x3"), "the program");
  EXPECT_EQ(asker("/home/ada/a.out:0 +0x11 > /x/libcudart.so.13:0 +0x3"), "the program");
  EXPECT_EQ(asker("/home/ada/run.py:3 main > /usr/lib/python3/dist-packages/cuda/bindings/driver.so:0 +0x1"),
            "the program");
}

TEST(Libraries, WhatTheToolkitBringsIsNobodysOwnLine) {
  for (const char* path :
       {"/usr/local/cuda-13.0/include/cuda_runtime.h",
        "/usr/local/cuda/targets/x86_64-linux/include/cuda_runtime_api.h",
        "/home/ada/miniconda3/include/cuda_runtime.h", "/home/ada/cuda-12.4/include/crt/host_runtime.h",
        "/home/ada/env/lib/python3.12/site-packages/nvidia/cu13/include/cuda_fp16.hpp",
        "/home/ada/cccl/thrust/thrust/detail/vector_base.inl", "/home/ada/cccl/cub/cub/util_allocator.cuh",
        "/opt/gcc/include/c++/13/bits/stl_vector.h", "/home/ada/llvm/include/c++/v1/vector",
        "/tmp/tmpxft_0001_main.cudafe1.stub.c", "/home/ada/src/cutlass/include/cutlass/device_kernel.h"}) {
    EXPECT_TRUE(is_toolkit_file(path)) << path;
    EXPECT_TRUE(is_library_file(path)) << path;
    EXPECT_EQ(asker(std::string("/home/ada/main.cu:3 main > ") + path + ":9 cudaMalloc > /x/libcudart.so.13:0 +0x3"),
              "the program")
        << path;
  }
  for (const char* path : {"/home/ada/main.cu", "/home/ada/include/buffers.h", "/home/ada/cuda_tricks/main.cpp",
                           "/home/ada/cuda-samples/Samples/vectorAdd.cu", "/home/ada/thrust_demo/main.cu",
                           "/home/ada/project/include/mine.cuh", "/home/ada/cub/main.cpp"}) {
    EXPECT_FALSE(is_toolkit_file(path)) << path;
    EXPECT_FALSE(is_library_file(path)) << path;
  }
}

TEST(Libraries, AnAllocationInsideAToolkitHeaderIsPlacedAtItsCaller) {
  for (const char* inner : {"/usr/local/cuda-13.0/include/cuda_runtime.h:789 cudaMalloc<float>",
                            "/home/ada/cuda/include/thrust/system/cuda/memory.h:12 malloc",
                            "/usr/include/c++/13/bits/new_allocator.h:151 allocate"}) {
    const Trace trace = traced(
        std::string("alloc 512 driver at /home/ada/main.cu:7 main > /home/ada/buffer.cu:31 make_buffer > ") + inner);
    const StackFacts stacks(trace);
    const StackId user = stacks.user(trace.events.at(0).stack);
    EXPECT_EQ(trace.stacks.frame(user).line, 31u) << inner;
  }
}

TEST(Libraries, PackagesAreKnownByTheirFolder) {
  EXPECT_EQ(asker("run.py:3 main > /v/lib/python3.12/site-packages/cupy/cuda/memory.py:9 alloc"), "CuPy");
  EXPECT_EQ(asker("run.py:3 main > /v/lib/python3.12/site-packages/flash_attn/ops.py:9 f"), "flash_attn");
  EXPECT_EQ(library_of_file("/v/lib/python3.12/site-packages/torch/lib/libc10_cuda.so"), "PyTorch");
}

}  // namespace
}  // namespace faultline
