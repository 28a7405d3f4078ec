#include "vgpu/context.h"

#include <algorithm>

#include "vgpu/call.h"
#include "vgpu/device.h"
#include "vgpu/event.h"
#include "vgpu/handles.h"
#include "vgpu/memory.h"
#include "vgpu/module.h"
#include "vgpu/pool.h"

namespace faultline::vgpu {
namespace {

Handles<CUcontext, Context>& contexts() { return Handles<CUcontext, Context>::get(); }

std::uint64_t next_context_id() {
  static std::atomic<std::uint64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

// Without a destructor: a program's own destructors may call the driver after this thread's objects are gone.
struct CurrentStack {
  std::array<CUcontext, 64> contexts;
  std::size_t depth;

  bool empty() const { return depth == 0; }
  CUcontext back() const { return contexts[depth - 1]; }
  void pop_back() { --depth; }
  void push_back(CUcontext handle) {
    require(depth < contexts.size(), CUDA_ERROR_OUT_OF_MEMORY);
    contexts[depth++] = handle;
  }
};
thread_local constinit CurrentStack current_stack{};

}  // namespace

Context::Context(CUdevice device_, unsigned flags_) : device(device_), flags(flags_), id(next_context_id()) {
  limits[CU_LIMIT_STACK_SIZE] = 1024;
  limits[CU_LIMIT_PRINTF_FIFO_SIZE] = std::size_t{1} << 20;
  limits[CU_LIMIT_MALLOC_HEAP_SIZE] = std::size_t{8} << 20;
  limits[CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH] = 2;
  limits[CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT] = 2048;
  limits[CU_LIMIT_MAX_L2_FETCH_GRANULARITY] = 64;
}

StreamPointer Context::default_stream(StreamPointer& stream, StreamRole role) {
  if (stream == nullptr) {
    stream = std::make_shared<Stream>(*this, role, CU_STREAM_DEFAULT, 0);
    streams_.push_back(stream);
  }
  return stream;
}

StreamPointer Context::legacy_stream() {
  const std::lock_guard lock(mutex_);
  return default_stream(legacy_, StreamRole::kLegacyDefault);
}

StreamPointer Context::per_thread_stream() {
  const std::lock_guard lock(mutex_);
  return default_stream(per_thread_[std::this_thread::get_id()], StreamRole::kPerThreadDefault);
}

void Context::add_stream(const StreamPointer& stream) {
  const std::lock_guard lock(mutex_);
  std::erase_if(streams_, [](const std::weak_ptr<Stream>& old) { return old.expired(); });
  streams_.push_back(stream);
}

std::vector<StreamPointer> Context::streams() {
  const std::lock_guard lock(mutex_);
  std::vector<StreamPointer> found;
  for (const std::weak_ptr<Stream>& weak : streams_) {
    if (StreamPointer stream = weak.lock()) found.push_back(std::move(stream));
  }
  return found;
}

void Context::add_implicit_waits(const Stream& stream, std::vector<CompletionPointer>& after) {
  if (!stream.blocking()) return;
  const std::lock_guard lock(mutex_);
  if (stream.role != StreamRole::kLegacyDefault) {
    if (legacy_ != nullptr) after.push_back(legacy_->last());
    return;
  }
  for (const std::weak_ptr<Stream>& weak : streams_) {
    const StreamPointer other = weak.lock();
    if (other != nullptr && other.get() != &stream && other->blocking()) after.push_back(other->last());
  }
}

std::vector<CompletionPointer> Context::pending() {
  const std::vector<StreamPointer> all = streams();
  const auto lock = order_lock();
  std::vector<CompletionPointer> found;
  for (const StreamPointer& stream : all) {
    if (stream->last() != nullptr && !stream->last()->done()) found.push_back(stream->last());
  }
  return found;
}

void wait_for_all(const std::vector<CompletionPointer>& pending) {
  for (const CompletionPointer& completion : pending) completion->wait();
}

void synchronize(Context& context) {
  wait_for_all(context.pending());
  release_pool_memory_over_threshold(context.device);
}

void synchronize_device(CUdevice device) {
  for (const ContextPointer& context : contexts().all()) {
    if (context->device == device && !context->ended) wait_for_all(context->pending());
  }
}

ContextPointer require_context(CUcontext handle) {
  ContextPointer context =
      contexts().require(handle != nullptr ? handle : current_context(), CUDA_ERROR_INVALID_CONTEXT);
  require(!context->ended, CUDA_ERROR_CONTEXT_IS_DESTROYED);
  return context;
}

ContextPointer create_context(CUdevice device, unsigned flags) {
  require_device(device);
  require(Memory::get().charge(device, devices().context_bytes), CUDA_ERROR_OUT_OF_MEMORY);
  auto context = std::make_shared<Context>(device, flags);
  context->handle = contexts().insert(context);
  return context;
}

void end_context(const ContextPointer& context) {
  require(!context->ended.exchange(true), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  wait_for_all(context->pending());
  forget_streams_of(*context);
  forget_events_of(*context);
  forget_modules_of(*context);
  Memory::get().remove_all_of(context->handle);
  Memory::get().discharge(context->device, devices().context_bytes);
}

CUcontext current_context() { return current_stack.empty() ? nullptr : current_stack.back(); }

void push_context(CUcontext handle) { current_stack.push_back(handle); }

CUcontext pop_context() {
  require(!current_stack.empty(), CUDA_ERROR_INVALID_CONTEXT);
  const CUcontext handle = current_stack.back();
  current_stack.pop_back();
  return handle;
}

void set_context(CUcontext handle) {
  if (!current_stack.empty()) current_stack.pop_back();
  if (handle != nullptr) current_stack.push_back(handle);
}

}  // namespace faultline::vgpu
