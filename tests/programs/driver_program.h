// What the test programs share: a context on the first device, and a check that says where it stopped.
#pragma once

#include <cuda.h>

#include <cstdio>
#include <cstdlib>

#define CHECK(call)                                                        \
  do {                                                                     \
    const CUresult result_ = (call);                                       \
    if (result_ != CUDA_SUCCESS) {                                         \
      std::fprintf(stderr, "%s:%d: %d\n", __FILE__, __LINE__, result_);    \
      std::exit(4);                                                        \
    }                                                                      \
  } while (0)

inline CUcontext begin() {
  CUdevice device;
  CUcontext context;
  CHECK(cuInit(0));
  CHECK(cuDeviceGet(&device, 0));
  CHECK(cuDevicePrimaryCtxRetain(&context, device));
  CHECK(cuCtxSetCurrent(context));
  return context;
}

// Not inlined, so that every allocation has a frame of its own.
__attribute__((noinline)) inline CUdeviceptr take(size_t bytes) {
  CUdeviceptr pointer = 0;
  CHECK(cuMemAlloc(&pointer, bytes));
  return pointer;
}
