#include <algorithm>

#include "vgpu/api.h"
#include "vgpu/call.h"
#include "vgpu/capture.h"
#include "vgpu/context.h"
#include "vgpu/host_function.h"
#include "vgpu/pool.h"

namespace faultline::vgpu {
namespace {

constexpr int kLeastPriority = 0, kGreatestPriority = -5;

// Everything the stream's next operation would wait for. Takes the order lock.
std::vector<CompletionPointer> pending_of(Stream& stream) {
  const auto lock = order_lock();
  require_not_captured(stream);
  std::vector<CompletionPointer> pending{stream.last()};
  if (stream.role == StreamRole::kLegacyDefault) stream.context.add_implicit_waits(stream, pending);
  std::erase_if(pending, [](const CompletionPointer& completion) { return completion == nullptr || completion->done(); });
  return pending;
}

CUresult create(CUstream* stream, unsigned flags, int priority) {
  require(stream != nullptr && (flags & ~unsigned{CU_STREAM_NON_BLOCKING}) == 0);
  *stream = create_stream(*require_context(), flags, std::clamp(priority, kGreatestPriority, kLeastPriority));
  return CUDA_SUCCESS;
}

CUresult call_host(CUstream stream, CUhostFn function, void* argument) {
  require(function != nullptr);
  submit(*require_stream(stream), host_operation({.fn = function, .userData = argument}));
  return CUDA_SUCCESS;
}

}  // namespace

CUresult api::cuStreamCreate(CUstream* stream, unsigned flags) { return create(stream, flags, kLeastPriority); }
CUresult api::cuStreamCreateWithPriority(CUstream* stream, unsigned flags, int priority) { return create(stream, flags, priority); }

CUresult api::cuStreamDestroy(CUstream stream) {
  {
    const StreamPointer target = require_stream(stream);
    require(target->role == StreamRole::kCreated, CUDA_ERROR_INVALID_HANDLE);
    const auto lock = order_lock();
    if (captured(*target)) target->capture->invalidated = true;
  }
  destroy_stream(stream);
  return CUDA_SUCCESS;
}

CUresult api::cuStreamSynchronize(CUstream stream) {
  const StreamPointer target = require_stream(stream);
  wait_for_all(pending_of(*target));
  release_pool_memory_over_threshold(target->context.device);
  return CUDA_SUCCESS;
}

CUresult api::cuStreamQuery(CUstream stream) { return pending_of(*require_stream(stream)).empty() ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY; }

CUresult api::cuStreamGetPriority(CUstream stream, int* priority) { return answer(priority, [&] { return require_stream(stream)->priority; }); }

CUresult api::cuStreamGetFlags(CUstream stream, unsigned* flags) {
  require(flags != nullptr);
  const StreamPointer target = require_stream(stream);
  *flags = target->flags;
  return CUDA_SUCCESS;
}

CUresult api::cuStreamGetId(CUstream stream, unsigned long long* id) { return answer(id, [&] { return require_stream(stream)->id; }); }

CUresult api::cuStreamGetCtx(CUstream stream, CUcontext* context) { return answer(context, [&] { return require_stream(stream)->context.handle; }); }

CUresult api::cuStreamGetCtx(CUstream stream, CUcontext* context, CUgreenCtx* green) {
  require(context != nullptr);
  *context = require_stream(stream)->context.handle;
  if (green != nullptr) *green = nullptr;
  return CUDA_SUCCESS;
}

CUresult api::cuStreamGetDevice(CUstream stream, CUdevice* device) { return answer(device, [&] { return require_stream(stream)->context.device; }); }

CUresult api::cuStreamAttachMemAsync(CUstream stream, CUdeviceptr, std::size_t, unsigned) {
  require_stream(stream);
  return CUDA_SUCCESS;  // managed memory is always everybody's here
}

CUresult api::cuLaunchHostFunc(CUstream stream, CUhostFn function, void* argument) { return call_host(stream, function, argument); }
CUresult api::cuLaunchHostFunc(CUstream stream, CUhostFn function, void* argument, unsigned) { return call_host(stream, function, argument); }

CUresult api::cuStreamAddCallback(CUstream stream, CUstreamCallback callback, void* argument, unsigned flags) {
  require(callback != nullptr && flags == 0);
  const StreamPointer target = require_stream(stream);
  const auto lock = order_lock();
  require_not_captured(*target);
  target->push([stream, callback, argument] {
    const HostFunctionScope scope;
    callback(stream, CUDA_SUCCESS, argument);
  });
  return CUDA_SUCCESS;
}

}  // namespace faultline::vgpu
