// The driver functions whose calls are recorded, by name and exact type. All others are forwarded and only their failures told.
//
// An observer makes the real call itself, exactly once, and returns its result. Allocations are recorded after it, frees before it: between a free
// and the next allocation of the same address, by whatever thread, the trace has them in that order.
#pragma once

#include "driver/functions.h"

namespace faultline::capture {

class ThreadRecorder;

struct Call {
  const char* name;           // as the program knows the function
  driver::StreamKind stream;  // what stream 0 means to it
};

template <class Tag, class Function>
struct Observer {
  static constexpr bool kExists = false;
};

#define FAULTLINE_OBSERVE(base, ...)                                                                                             \
  template <>                                                                                                                    \
  struct Observer<driver::Tag_##base, CUresult(__VA_ARGS__)> {                                                                   \
    static constexpr bool kExists = true;                                                                                        \
    static CUresult call(ThreadRecorder& thread, const Call& call, CUresult (*real)(__VA_ARGS__) __VA_OPT__(,) __VA_ARGS__);     \
  }

// memory_calls.cpp
FAULTLINE_OBSERVE(cuMemAlloc, CUdeviceptr*, std::size_t);
FAULTLINE_OBSERVE(cuMemAllocPitch, CUdeviceptr*, std::size_t*, std::size_t, std::size_t, unsigned);
FAULTLINE_OBSERVE(cuMemFree, CUdeviceptr);
FAULTLINE_OBSERVE(cuMemAllocManaged, CUdeviceptr*, std::size_t, unsigned);
FAULTLINE_OBSERVE(cuMemAllocHost, void**, std::size_t);
FAULTLINE_OBSERVE(cuMemHostAlloc, void**, std::size_t, unsigned);
FAULTLINE_OBSERVE(cuMemFreeHost, void*);
FAULTLINE_OBSERVE(cuMemHostRegister, void*, std::size_t, unsigned);
FAULTLINE_OBSERVE(cuMemHostUnregister, void*);
FAULTLINE_OBSERVE(cuIpcOpenMemHandle, CUdeviceptr*, CUipcMemHandle, unsigned);
FAULTLINE_OBSERVE(cuIpcCloseMemHandle, CUdeviceptr);
FAULTLINE_OBSERVE(cuMemAllocAsync, CUdeviceptr*, std::size_t, CUstream);
FAULTLINE_OBSERVE(cuMemAllocFromPoolAsync, CUdeviceptr*, std::size_t, CUmemoryPool, CUstream);
FAULTLINE_OBSERVE(cuMemFreeAsync, CUdeviceptr, CUstream);
FAULTLINE_OBSERVE(cuMemCreate, CUmemGenericAllocationHandle*, std::size_t, const CUmemAllocationProp*, unsigned long long);
FAULTLINE_OBSERVE(cuMemMap, CUdeviceptr, std::size_t, std::size_t, CUmemGenericAllocationHandle, unsigned long long);
FAULTLINE_OBSERVE(cuMemUnmap, CUdeviceptr, std::size_t);
FAULTLINE_OBSERVE(cuMemRelease, CUmemGenericAllocationHandle);

// copy_calls.cpp
FAULTLINE_OBSERVE(cuMemcpy, CUdeviceptr, CUdeviceptr, std::size_t);
FAULTLINE_OBSERVE(cuMemcpyAsync, CUdeviceptr, CUdeviceptr, std::size_t, CUstream);
FAULTLINE_OBSERVE(cuMemcpyHtoD, CUdeviceptr, const void*, std::size_t);
FAULTLINE_OBSERVE(cuMemcpyHtoDAsync, CUdeviceptr, const void*, std::size_t, CUstream);
FAULTLINE_OBSERVE(cuMemcpyDtoH, void*, CUdeviceptr, std::size_t);
FAULTLINE_OBSERVE(cuMemcpyDtoHAsync, void*, CUdeviceptr, std::size_t, CUstream);
FAULTLINE_OBSERVE(cuMemcpyDtoD, CUdeviceptr, CUdeviceptr, std::size_t);
FAULTLINE_OBSERVE(cuMemcpyDtoDAsync, CUdeviceptr, CUdeviceptr, std::size_t, CUstream);
FAULTLINE_OBSERVE(cuMemcpyPeer, CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, std::size_t);
FAULTLINE_OBSERVE(cuMemcpyPeerAsync, CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, std::size_t, CUstream);
FAULTLINE_OBSERVE(cuMemcpy2D, const CUDA_MEMCPY2D*);
FAULTLINE_OBSERVE(cuMemcpy2DUnaligned, const CUDA_MEMCPY2D*);
FAULTLINE_OBSERVE(cuMemcpy2DAsync, const CUDA_MEMCPY2D*, CUstream);
FAULTLINE_OBSERVE(cuMemcpy3D, const CUDA_MEMCPY3D*);
FAULTLINE_OBSERVE(cuMemcpy3DAsync, const CUDA_MEMCPY3D*, CUstream);
FAULTLINE_OBSERVE(cuMemsetD8, CUdeviceptr, unsigned char, std::size_t);
FAULTLINE_OBSERVE(cuMemsetD16, CUdeviceptr, unsigned short, std::size_t);
FAULTLINE_OBSERVE(cuMemsetD32, CUdeviceptr, unsigned, std::size_t);
FAULTLINE_OBSERVE(cuMemsetD8Async, CUdeviceptr, unsigned char, std::size_t, CUstream);
FAULTLINE_OBSERVE(cuMemsetD16Async, CUdeviceptr, unsigned short, std::size_t, CUstream);
FAULTLINE_OBSERVE(cuMemsetD32Async, CUdeviceptr, unsigned, std::size_t, CUstream);
FAULTLINE_OBSERVE(cuMemsetD2D8, CUdeviceptr, std::size_t, unsigned char, std::size_t, std::size_t);
FAULTLINE_OBSERVE(cuMemsetD2D16, CUdeviceptr, std::size_t, unsigned short, std::size_t, std::size_t);
FAULTLINE_OBSERVE(cuMemsetD2D32, CUdeviceptr, std::size_t, unsigned, std::size_t, std::size_t);
FAULTLINE_OBSERVE(cuMemsetD2D8Async, CUdeviceptr, std::size_t, unsigned char, std::size_t, std::size_t, CUstream);
FAULTLINE_OBSERVE(cuMemsetD2D16Async, CUdeviceptr, std::size_t, unsigned short, std::size_t, std::size_t, CUstream);
FAULTLINE_OBSERVE(cuMemsetD2D32Async, CUdeviceptr, std::size_t, unsigned, std::size_t, std::size_t, CUstream);

// launch_calls.cpp
FAULTLINE_OBSERVE(cuLaunchKernel, CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void**, void**);
FAULTLINE_OBSERVE(cuLaunchKernelEx, const CUlaunchConfig*, CUfunction, void**, void**);
FAULTLINE_OBSERVE(cuLaunchCooperativeKernel, CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void**);
FAULTLINE_OBSERVE(cuModuleUnload, CUmodule);
FAULTLINE_OBSERVE(cuLibraryUnload, CUlibrary);
FAULTLINE_OBSERVE(cuModuleLoad, CUmodule*, const char*);
FAULTLINE_OBSERVE(cuModuleLoadData, CUmodule*, const void*);
FAULTLINE_OBSERVE(cuModuleLoadDataEx, CUmodule*, const void*, unsigned, CUjit_option*, void**);
FAULTLINE_OBSERVE(cuModuleLoadFatBinary, CUmodule*, const void*);
FAULTLINE_OBSERVE(cuLibraryLoadData, CUlibrary*, const void*, CUjit_option*, void**, unsigned, CUlibraryOption*, void**, unsigned);

// order_calls.cpp
FAULTLINE_OBSERVE(cuStreamCreate, CUstream*, unsigned);
FAULTLINE_OBSERVE(cuStreamCreateWithPriority, CUstream*, unsigned, int);
FAULTLINE_OBSERVE(cuStreamDestroy, CUstream);
FAULTLINE_OBSERVE(cuEventDestroy, CUevent);
FAULTLINE_OBSERVE(cuEventRecord, CUevent, CUstream);
FAULTLINE_OBSERVE(cuEventRecordWithFlags, CUevent, CUstream, unsigned);
FAULTLINE_OBSERVE(cuStreamWaitEvent, CUstream, CUevent, unsigned);
FAULTLINE_OBSERVE(cuEventSynchronize, CUevent);
FAULTLINE_OBSERVE(cuEventQuery, CUevent);
FAULTLINE_OBSERVE(cuStreamSynchronize, CUstream);
FAULTLINE_OBSERVE(cuStreamQuery, CUstream);
FAULTLINE_OBSERVE(cuCtxSynchronize);
FAULTLINE_OBSERVE(cuCtxSynchronize, CUcontext);

// graph_calls.cpp
FAULTLINE_OBSERVE(cuStreamBeginCapture, CUstream, CUstreamCaptureMode);
FAULTLINE_OBSERVE(cuStreamBeginCaptureToGraph, CUstream, CUgraph, const CUgraphNode*, const CUgraphEdgeData*, std::size_t, CUstreamCaptureMode);
FAULTLINE_OBSERVE(cuStreamEndCapture, CUstream, CUgraph*);
FAULTLINE_OBSERVE(cuGraphInstantiate, CUgraphExec*, CUgraph, CUgraphNode*, char*, std::size_t);
FAULTLINE_OBSERVE(cuGraphInstantiateWithFlags, CUgraphExec*, CUgraph, unsigned long long);
FAULTLINE_OBSERVE(cuGraphInstantiateWithParams, CUgraphExec*, CUgraph, CUDA_GRAPH_INSTANTIATE_PARAMS*);
FAULTLINE_OBSERVE(cuGraphExecUpdate, CUgraphExec, CUgraph, CUgraphExecUpdateResultInfo*);
FAULTLINE_OBSERVE(cuGraphExecUpdate, CUgraphExec, CUgraph, CUgraphNode*, CUgraphExecUpdateResult*);
FAULTLINE_OBSERVE(cuGraphLaunch, CUgraphExec, CUstream);
FAULTLINE_OBSERVE(cuGraphExecDestroy, CUgraphExec);
FAULTLINE_OBSERVE(cuGraphDestroy, CUgraph);

// context_calls.cpp
FAULTLINE_OBSERVE(cuInit, unsigned);
FAULTLINE_OBSERVE(cuCtxCreate, CUcontext*, unsigned, CUdevice);
FAULTLINE_OBSERVE(cuCtxCreate, CUcontext*, CUexecAffinityParam*, int, unsigned, CUdevice);
FAULTLINE_OBSERVE(cuCtxCreate, CUcontext*, CUctxCreateParams*, unsigned, CUdevice);
FAULTLINE_OBSERVE(cuCtxSetCurrent, CUcontext);
FAULTLINE_OBSERVE(cuCtxDestroy, CUcontext);
FAULTLINE_OBSERVE(cuDevicePrimaryCtxReset, CUdevice);
FAULTLINE_OBSERVE(cuDevicePrimaryCtxRelease, CUdevice);

// proc_address.cpp
FAULTLINE_OBSERVE(cuGetProcAddress, const char*, void**, int, cuuint64_t);
FAULTLINE_OBSERVE(cuGetProcAddress, const char*, void**, int, cuuint64_t, CUdriverProcAddressQueryResult*);

#define FAULTLINE_OBSERVER(base, ...) CUresult Observer<driver::Tag_##base, CUresult(__VA_ARGS__)>::call

}  // namespace faultline::capture
