// The driver functions whose calls are recorded, by name and exact type. All others are forwarded and only their failures told.
//
// An observer makes the real call itself, exactly once, and returns its result. It may throw, before the real call or after it: capture/forward.h sees to it that
// the program gets the driver's answer all the same. Observers of FAULTLINE_OBSERVE_CALL are left out when only memory is recorded any more. Allocations are recorded after it, frees before it: between a free
// and the next allocation of the same address, by whatever thread, the trace has them in that order.
#pragma once

#include "driver/functions.h"

namespace faultline::capture {

class ThreadRecorder;

struct Call {
  const char* name;           // as the program knows the function
  driver::StreamKind stream;  // what stream 0 means to it
};

// The driver's function, and what became of the call.
template <class... Arguments>
class Real {
 public:
  explicit Real(CUresult (*function)(Arguments...)) : function_(function) {}
  CUresult operator()(Arguments... arguments) const {
    state_ = State::kUnderWay;
    result_ = function_(arguments...);
    state_ = State::kMade;
    return result_;
  }
  bool is_under_way() const { return state_ == State::kUnderWay; }
  bool was_made() const { return state_ == State::kMade; }
  CUresult result() const { return result_; }

 private:
  enum class State : unsigned char { kNotMade, kUnderWay, kMade };
  CUresult (*function_)(Arguments...);
  mutable CUresult result_ = CUDA_SUCCESS;
  mutable State state_ = State::kNotMade;
};

template <class Tag, class Function>
struct Observer {
  static constexpr bool kExists = false;
};

#define FAULTLINE_OBSERVE_AS(is_call, base, ...)                                                                                 \
  template <>                                                                                                                    \
  struct Observer<driver::Tag_##base, CUresult(__VA_ARGS__)> {                                                                   \
    static constexpr bool kExists = true;                                                                                        \
    static constexpr bool kIsCall = is_call;                                                                                     \
    static CUresult call(ThreadRecorder& thread, const Call& call, const Real<__VA_ARGS__>& real __VA_OPT__(,) __VA_ARGS__);     \
  }
#define FAULTLINE_OBSERVE(...) FAULTLINE_OBSERVE_AS(false, __VA_ARGS__)
#define FAULTLINE_OBSERVE_CALL(...) FAULTLINE_OBSERVE_AS(true, __VA_ARGS__)

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
FAULTLINE_OBSERVE_CALL(cuMemcpy, CUdeviceptr, CUdeviceptr, std::size_t);
FAULTLINE_OBSERVE_CALL(cuMemcpyAsync, CUdeviceptr, CUdeviceptr, std::size_t, CUstream);
FAULTLINE_OBSERVE_CALL(cuMemcpyHtoD, CUdeviceptr, const void*, std::size_t);
FAULTLINE_OBSERVE_CALL(cuMemcpyHtoDAsync, CUdeviceptr, const void*, std::size_t, CUstream);
FAULTLINE_OBSERVE_CALL(cuMemcpyDtoH, void*, CUdeviceptr, std::size_t);
FAULTLINE_OBSERVE_CALL(cuMemcpyDtoHAsync, void*, CUdeviceptr, std::size_t, CUstream);
FAULTLINE_OBSERVE_CALL(cuMemcpyDtoD, CUdeviceptr, CUdeviceptr, std::size_t);
FAULTLINE_OBSERVE_CALL(cuMemcpyDtoDAsync, CUdeviceptr, CUdeviceptr, std::size_t, CUstream);
FAULTLINE_OBSERVE_CALL(cuMemcpyPeer, CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, std::size_t);
FAULTLINE_OBSERVE_CALL(cuMemcpyPeerAsync, CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, std::size_t, CUstream);
FAULTLINE_OBSERVE_CALL(cuMemcpy2D, const CUDA_MEMCPY2D*);
FAULTLINE_OBSERVE_CALL(cuMemcpy2DUnaligned, const CUDA_MEMCPY2D*);
FAULTLINE_OBSERVE_CALL(cuMemcpy2DAsync, const CUDA_MEMCPY2D*, CUstream);
FAULTLINE_OBSERVE_CALL(cuMemcpy3D, const CUDA_MEMCPY3D*);
FAULTLINE_OBSERVE_CALL(cuMemcpy3DAsync, const CUDA_MEMCPY3D*, CUstream);
FAULTLINE_OBSERVE_CALL(cuMemsetD8, CUdeviceptr, unsigned char, std::size_t);
FAULTLINE_OBSERVE_CALL(cuMemsetD16, CUdeviceptr, unsigned short, std::size_t);
FAULTLINE_OBSERVE_CALL(cuMemsetD32, CUdeviceptr, unsigned, std::size_t);
FAULTLINE_OBSERVE_CALL(cuMemsetD8Async, CUdeviceptr, unsigned char, std::size_t, CUstream);
FAULTLINE_OBSERVE_CALL(cuMemsetD16Async, CUdeviceptr, unsigned short, std::size_t, CUstream);
FAULTLINE_OBSERVE_CALL(cuMemsetD32Async, CUdeviceptr, unsigned, std::size_t, CUstream);
FAULTLINE_OBSERVE_CALL(cuMemsetD2D8, CUdeviceptr, std::size_t, unsigned char, std::size_t, std::size_t);
FAULTLINE_OBSERVE_CALL(cuMemsetD2D16, CUdeviceptr, std::size_t, unsigned short, std::size_t, std::size_t);
FAULTLINE_OBSERVE_CALL(cuMemsetD2D32, CUdeviceptr, std::size_t, unsigned, std::size_t, std::size_t);
FAULTLINE_OBSERVE_CALL(cuMemsetD2D8Async, CUdeviceptr, std::size_t, unsigned char, std::size_t, std::size_t, CUstream);
FAULTLINE_OBSERVE_CALL(cuMemsetD2D16Async, CUdeviceptr, std::size_t, unsigned short, std::size_t, std::size_t, CUstream);
FAULTLINE_OBSERVE_CALL(cuMemsetD2D32Async, CUdeviceptr, std::size_t, unsigned, std::size_t, std::size_t, CUstream);

// launch_calls.cpp
FAULTLINE_OBSERVE_CALL(cuLaunchKernel, CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void**, void**);
FAULTLINE_OBSERVE_CALL(cuLaunchKernelEx, const CUlaunchConfig*, CUfunction, void**, void**);
FAULTLINE_OBSERVE_CALL(cuLaunchCooperativeKernel, CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void**);
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
FAULTLINE_OBSERVE_CALL(cuEventRecord, CUevent, CUstream);
FAULTLINE_OBSERVE_CALL(cuEventRecordWithFlags, CUevent, CUstream, unsigned);
FAULTLINE_OBSERVE_CALL(cuStreamWaitEvent, CUstream, CUevent, unsigned);
FAULTLINE_OBSERVE_CALL(cuEventSynchronize, CUevent);
FAULTLINE_OBSERVE_CALL(cuEventQuery, CUevent);
FAULTLINE_OBSERVE_CALL(cuStreamSynchronize, CUstream);
FAULTLINE_OBSERVE_CALL(cuStreamQuery, CUstream);
FAULTLINE_OBSERVE_CALL(cuCtxSynchronize);
FAULTLINE_OBSERVE_CALL(cuCtxSynchronize, CUcontext);

// graph_calls.cpp
FAULTLINE_OBSERVE(cuStreamBeginCapture, CUstream, CUstreamCaptureMode);
FAULTLINE_OBSERVE(cuStreamBeginCaptureToGraph, CUstream, CUgraph, const CUgraphNode*, const CUgraphEdgeData*, std::size_t, CUstreamCaptureMode);
FAULTLINE_OBSERVE(cuStreamEndCapture, CUstream, CUgraph*);
FAULTLINE_OBSERVE(cuGraphInstantiate, CUgraphExec*, CUgraph, CUgraphNode*, char*, std::size_t);
FAULTLINE_OBSERVE(cuGraphInstantiateWithFlags, CUgraphExec*, CUgraph, unsigned long long);
FAULTLINE_OBSERVE(cuGraphInstantiateWithParams, CUgraphExec*, CUgraph, CUDA_GRAPH_INSTANTIATE_PARAMS*);
FAULTLINE_OBSERVE(cuGraphExecUpdate, CUgraphExec, CUgraph, CUgraphExecUpdateResultInfo*);
FAULTLINE_OBSERVE(cuGraphExecUpdate, CUgraphExec, CUgraph, CUgraphNode*, CUgraphExecUpdateResult*);
FAULTLINE_OBSERVE_CALL(cuGraphLaunch, CUgraphExec, CUstream);
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
