#include <algorithm>

#include "vgpu/api.h"
#include "vgpu/call.h"
#include "vgpu/capture.h"
#include "vgpu/context.h"
#include "vgpu/host_function.h"
#include "vgpu/pool.h"

namespace faultline::vgpu {
namespace {

// Everything the stream's next operation would wait for. Takes the order lock.
std::vector<CompletionPointer> pending_of(Stream& stream) {
  const auto lock = order_lock();
  require_not_captured(stream);
  std::vector<CompletionPointer> pending{stream.last()};
  if (stream.role == StreamRole::kLegacyDefault) stream.context.add_implicit_waits(stream, pending);
  std::erase_if(pending,
                [](const CompletionPointer& completion) { return completion == nullptr || completion->done(); });
  return pending;
}

void create(CUstream* stream, unsigned flags, int priority) {
  require(stream != nullptr && (flags & ~unsigned{CU_STREAM_NON_BLOCKING}) == 0);
  *stream = create_stream(*require_context(), flags, std::clamp(priority, kGreatestPriority, kLeastPriority));
}

}  // namespace

void api::cuStreamCreate(CUstream* stream, unsigned flags) { create(stream, flags, kLeastPriority); }
void api::cuStreamCreateWithPriority(CUstream* stream, unsigned flags, int priority) {
  create(stream, flags, priority);
}

void api::cuStreamDestroy(CUstream stream) {
  {
    const StreamPointer target = require_stream(stream);
    require(target->role == StreamRole::kCreated, CUDA_ERROR_INVALID_HANDLE);
    const auto lock = order_lock();
    if (captured(*target)) target->capture->invalidated = true;
  }
  destroy_stream(stream);
}

void api::cuStreamSynchronize(CUstream stream) {
  const StreamPointer target = require_stream(stream);
  wait_for_all(pending_of(*target));
  release_pool_memory_over_threshold(target->context.device);
}

void api::cuStreamQuery(CUstream stream) { require(pending_of(*require_stream(stream)).empty(), CUDA_ERROR_NOT_READY); }

void api::cuStreamGetPriority(CUstream stream, int* priority) {
  answer(priority, [&] { return require_stream(stream)->priority; });
}

void api::cuStreamGetFlags(CUstream stream, unsigned* flags) {
  answer(flags, [&] { return require_stream(stream)->flags; });
}

void api::cuStreamGetId(CUstream stream, unsigned long long* id) {
  answer(id, [&] { return require_stream(stream)->id; });
}

void api::cuStreamGetCtx(CUstream stream, CUcontext* context) {
  answer(context, [&] { return require_stream(stream)->context.handle; });
}

void api::cuStreamGetCtx(CUstream stream, CUcontext* context, CUgreenCtx* green) {
  api::cuStreamGetCtx(stream, context);
  if (green != nullptr) *green = nullptr;
}

void api::cuStreamGetDevice(CUstream stream, CUdevice* device) {
  answer(device, [&] { return require_stream(stream)->context.device; });
}

// Managed memory is always everybody's here.
void api::cuStreamAttachMemAsync(CUstream stream, CUdeviceptr, std::size_t, unsigned) { require_stream(stream); }

void api::cuLaunchHostFunc(CUstream stream, CUhostFn function, void* argument) {
  require(function != nullptr);
  submit(*require_stream(stream), host_operation({.fn = function, .userData = argument}));
}
void api::cuLaunchHostFunc(CUstream stream, CUhostFn function, void* argument, unsigned) {
  api::cuLaunchHostFunc(stream, function, argument);
}

void api::cuStreamAddCallback(CUstream stream, CUstreamCallback callback, void* argument, unsigned flags) {
  require(callback != nullptr && flags == 0);
  const StreamPointer target = require_stream(stream);
  const auto lock = order_lock();
  require_not_captured(*target);
  target->push([stream, callback, argument] {
    const HostFunctionScope scope;
    callback(stream, CUDA_SUCCESS, argument);
  });
}

}  // namespace faultline::vgpu
