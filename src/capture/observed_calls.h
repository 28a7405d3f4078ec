// The driver functions whose calls are recorded, by name. All others are forwarded and only their failures told.
//
// An observer is a function observe::cuName with the driver function's own parameters behind the call: the declarations come from the list of driver functions, so an observer whose
// signature the driver does not have, or of a function that is not listed here, does not compile; observers_exist.cpp has the linker miss those of a signature that has none. It makes
// the real call itself, exactly once, and returns its result. It may throw, before the real call or after it: capture/forward.h sees to it that the program gets the driver's
// answer all the same. Those listed as CALL are left out when only memory is recorded any more. Allocations are recorded after the real call, frees before it: between a free and the
// next allocation of the same address, by whatever thread, the trace has them in that order.
#pragma once

#include <type_traits>

#include "driver/functions.h"

namespace faultline::capture {

class ThreadRecorder;

struct Call {
  const char* name;           // as the program knows the function
  driver::StreamKind stream;  // what stream 0 means to it
};

// Something to call that lives on the caller's stack.
template <class... Arguments>
class Step {
 public:
  template <class Function>
  explicit Step(const Function& function)
      : function_(&function), call_([](const void* of, Arguments... arguments) {
          return (*static_cast<const Function*>(of))(arguments...);
        }) {}
  CUresult operator()(Arguments... arguments) const { return call_(function_, arguments...); }

 private:
  const void* function_;
  CUresult (*call_)(const void*, Arguments...);
};

// A call of the program on its way through an observer, and what became of it.
class ObservedCall : public Call {
 public:
  ObservedCall(const Call& call, ThreadRecorder& by, Step<> make) : Call(call), thread(by), make_(make) {}

  ThreadRecorder& thread;

  // The driver's function with the program's arguments.
  CUresult real() {
    state_ = State::kUnderWay;
    result_ = make_();
    state_ = State::kMade;
    return result_;
  }
  // Tells of a failure, where the result is one, and gives the result back.
  CUresult told(CUresult result);
  CUresult made_and_told() { return told(real()); }

  bool is_under_way() const { return state_ == State::kUnderWay; }
  bool was_made() const { return state_ == State::kMade; }
  CUresult result() const { return result_; }

 private:
  enum class State : unsigned char { kNotMade, kUnderWay, kMade };
  Step<> make_;
  CUresult result_ = CUDA_SUCCESS;
  State state_ = State::kNotMade;
};

// clang-format off
#define FAULTLINE_OBSERVED_FUNCTIONS(ALWAYS, CALL)                                                                     \
  /* memory_calls.cpp */                                                                                               \
  ALWAYS(cuMemAlloc) ALWAYS(cuMemAllocPitch) ALWAYS(cuMemFree) ALWAYS(cuMemAllocManaged) ALWAYS(cuMemAllocHost)        \
  ALWAYS(cuMemHostAlloc) ALWAYS(cuMemFreeHost) ALWAYS(cuMemHostRegister) ALWAYS(cuMemHostUnregister)                   \
  ALWAYS(cuIpcOpenMemHandle) ALWAYS(cuIpcCloseMemHandle) ALWAYS(cuMemAllocAsync) ALWAYS(cuMemAllocFromPoolAsync)       \
  ALWAYS(cuMemFreeAsync) ALWAYS(cuMemCreate) ALWAYS(cuMemMap) ALWAYS(cuMemUnmap) ALWAYS(cuMemRelease)                  \
  /* copy_calls.cpp */                                                                                                 \
  CALL(cuMemcpy) CALL(cuMemcpyAsync) CALL(cuMemcpyHtoD) CALL(cuMemcpyHtoDAsync) CALL(cuMemcpyDtoH)                     \
  CALL(cuMemcpyDtoHAsync) CALL(cuMemcpyDtoD) CALL(cuMemcpyDtoDAsync) CALL(cuMemcpyPeer) CALL(cuMemcpyPeerAsync)        \
  CALL(cuMemcpy2D) CALL(cuMemcpy2DUnaligned) CALL(cuMemcpy2DAsync) CALL(cuMemcpy3D) CALL(cuMemcpy3DAsync)              \
  CALL(cuMemsetD8) CALL(cuMemsetD16) CALL(cuMemsetD32) CALL(cuMemsetD8Async) CALL(cuMemsetD16Async)                    \
  CALL(cuMemsetD32Async) CALL(cuMemsetD2D8) CALL(cuMemsetD2D16) CALL(cuMemsetD2D32) CALL(cuMemsetD2D8Async)            \
  CALL(cuMemsetD2D16Async) CALL(cuMemsetD2D32Async)                                                                    \
  /* launch_calls.cpp */                                                                                               \
  CALL(cuLaunchKernel) CALL(cuLaunchKernelEx) CALL(cuLaunchCooperativeKernel) ALWAYS(cuModuleUnload)                   \
  ALWAYS(cuLibraryUnload) ALWAYS(cuModuleLoad) ALWAYS(cuModuleLoadData) ALWAYS(cuModuleLoadDataEx)                     \
  ALWAYS(cuModuleLoadFatBinary) ALWAYS(cuLibraryLoadData)                                                              \
  /* order_calls.cpp */                                                                                                \
  ALWAYS(cuStreamCreate) ALWAYS(cuStreamCreateWithPriority) ALWAYS(cuStreamDestroy) ALWAYS(cuEventDestroy)             \
  CALL(cuEventRecord) CALL(cuEventRecordWithFlags) CALL(cuStreamWaitEvent) CALL(cuEventSynchronize)                    \
  CALL(cuEventQuery) CALL(cuStreamSynchronize) CALL(cuStreamQuery) CALL(cuCtxSynchronize)                              \
  /* graph_calls.cpp */                                                                                                \
  ALWAYS(cuStreamBeginCapture) ALWAYS(cuStreamBeginCaptureToGraph) ALWAYS(cuStreamEndCapture)                          \
  ALWAYS(cuGraphInstantiate) ALWAYS(cuGraphInstantiateWithFlags) ALWAYS(cuGraphInstantiateWithParams)                  \
  ALWAYS(cuGraphExecUpdate) CALL(cuGraphLaunch) ALWAYS(cuGraphExecDestroy) ALWAYS(cuGraphDestroy)                      \
  /* context_calls.cpp */                                                                                              \
  ALWAYS(cuInit) ALWAYS(cuCtxCreate) ALWAYS(cuCtxSetCurrent) ALWAYS(cuCtxDestroy) ALWAYS(cuDevicePrimaryCtxReset)      \
  ALWAYS(cuDevicePrimaryCtxRelease) ALWAYS(cuDevicePrimaryCtxRetain)                                                   \
  /* proc_address.cpp */                                                                                               \
  ALWAYS(cuGetProcAddress)
// clang-format on

enum class Observed : unsigned char { kNo, kAlways, kCall };
template <class Tag>
inline constexpr Observed kObserved = Observed::kNo;
#define FAULTLINE_ALWAYS(base) \
  template <>                  \
  inline constexpr Observed kObserved<driver::Tag_##base> = Observed::kAlways;
#define FAULTLINE_CALL(base) \
  template <>                \
  inline constexpr Observed kObserved<driver::Tag_##base> = Observed::kCall;
FAULTLINE_OBSERVED_FUNCTIONS(FAULTLINE_ALWAYS, FAULTLINE_CALL)
#undef FAULTLINE_ALWAYS
#undef FAULTLINE_CALL

#ifndef FAULTLINE_OBSERVER_LINKAGE
#define FAULTLINE_OBSERVER_LINKAGE [[gnu::weak, gnu::visibility("hidden")]]  // signatures of CUDA 3.1 have no observer
#endif
namespace observe {
#define FAULTLINE_OBSERVER_PARAMETERS(...) (ObservedCall & call __VA_OPT__(, ) __VA_ARGS__)
#define FAULTLINE_DRIVER_EXPORT(symbol, base, stream, parameters, arguments)                                         \
  FAULTLINE_OBSERVER_LINKAGE std::conditional_t<kObserved<driver::Tag_##base> == Observed::kNo, void, CUresult> base \
      FAULTLINE_OBSERVER_PARAMETERS parameters;
#include "driver_functions.inc"
#undef FAULTLINE_DRIVER_EXPORT
#undef FAULTLINE_OBSERVER_PARAMETERS
}  // namespace observe

template <class Tag, class Pointer>
struct Observer;
#define FAULTLINE_OBSERVER_OF(base)                                                      \
  template <class... Arguments>                                                          \
  struct Observer<driver::Tag_##base, CUresult (*)(Arguments...)> {                      \
    static constexpr CUresult (*function)(ObservedCall&, Arguments...) = &observe::base; \
  };
FAULTLINE_OBSERVED_FUNCTIONS(FAULTLINE_OBSERVER_OF, FAULTLINE_OBSERVER_OF)
#undef FAULTLINE_OBSERVER_OF

}  // namespace faultline::capture
