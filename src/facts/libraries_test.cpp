#include "facts/libraries.h"

#include "facts/facts_test_support.h"

namespace faultline {
namespace {

std::string asker(const std::string& frames) {
  const Trace trace = traced("alloc 512 at " + frames);
  return library_of(trace, trace.events.at(0).stack);
}

TEST(Libraries, TheInnermostModuleThatIsNotCudasRuntimeAsked) {
  EXPECT_EQ(asker("run.py:1 main > /x/libtorch_cuda.so:0 +0x1 > /x/libcublas.so.13:0 +0x2 > /x/libcudart.so.13:0 +0x3"), "cuBLAS");
  EXPECT_EQ(asker("run.py:1 main > /x/libtorch_cuda.so:0 +0x1 > /x/libnccl.so.2:0 +0x2"), "NCCL");
  EXPECT_EQ(asker("run.py:1 main > /usr/lib/libfoo.so.3:0 +0x2"), "libfoo");
}

TEST(Libraries, TheUsersOwnCodeIsTheProgram) {
  EXPECT_EQ(asker("/home/ada/main.cu:3 main > /x/libcudart.so.13:0 +0x3"), "the program");
  EXPECT_EQ(asker("/home/ada/a.out:0 +0x11 > /x/libcudart.so.13:0 +0x3"), "the program");
  EXPECT_EQ(asker("/home/ada/run.py:3 main > /usr/lib/python3/dist-packages/cuda/bindings/driver.so:0 +0x1"), "the program");
}

TEST(Libraries, PackagesAreKnownByTheirFolder) {
  EXPECT_EQ(asker("run.py:3 main > /v/lib/python3.12/site-packages/cupy/cuda/memory.py:9 alloc"), "CuPy");
  EXPECT_EQ(asker("run.py:3 main > /v/lib/python3.12/site-packages/flash_attn/ops.py:9 f"), "flash_attn");
  EXPECT_EQ(library_of_file("/v/lib/python3.12/site-packages/torch/lib/libc10_cuda.so"), "PyTorch");
}

}  // namespace
}  // namespace faultline
