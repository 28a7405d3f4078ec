// Contexts: the primary one of each device, and those a program makes. Each thread has a stack of current contexts.
//
// A context that has ended is never deleted, so that streams and events which outlive it stay valid; its handle answers
// CUDA_ERROR_CONTEXT_IS_DESTROYED from then on.
#pragma once

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "vgpu/stream.h"

namespace faultline::vgpu {

class Context {
 public:
  Context(CUdevice device, unsigned flags);

  StreamPointer legacy_stream();
  StreamPointer per_thread_stream();  // of the calling thread
  void add_stream(const StreamPointer& stream);

  // What an operation that is pushed to `stream` waits for beyond its own stream's order. The order lock is held.
  void add_implicit_waits(const Stream& stream, std::vector<CompletionPointer>& after);
  // What is still under way on all streams; each can be waited for without a lock. Takes the order lock.
  std::vector<CompletionPointer> pending();
  std::vector<StreamPointer> streams();  // that have not drained and gone

  CUcontext handle = nullptr;
  const CUdevice device;
  std::atomic<unsigned> flags;
  const std::uint64_t id;
  std::array<std::atomic<std::size_t>, CU_LIMIT_MAX> limits{};
  std::atomic<bool> ended{false};

 private:
  StreamPointer default_stream(StreamPointer& stream, StreamRole role);

  std::mutex mutex_;
  StreamPointer legacy_;
  std::map<std::thread::id, StreamPointer> per_thread_;
  std::vector<std::weak_ptr<Stream>> streams_;
};
using ContextPointer = std::shared_ptr<Context>;

ContextPointer require_context(CUcontext handle = nullptr);  // null means the current one
void wait_for_all(const std::vector<CompletionPointer>& pending);
void synchronize(Context& context);  // waits for all its streams, and lets pools give back what they need not keep
void synchronize_device(CUdevice device);

ContextPointer create_context(CUdevice device, unsigned flags);
void end_context(const ContextPointer& context);

// The calling thread's stack of contexts.
CUcontext current_context();
void push_context(CUcontext handle);
CUcontext pop_context();
void set_context(CUcontext handle);  // null pops

// The primary context of a device.
CUcontext retain_primary(CUdevice device);
void release_primary(CUdevice device);
void reset_primary(CUdevice device);
void set_primary_flags(CUdevice device, unsigned flags);
bool primary_state(CUdevice device, unsigned& flags);

}  // namespace faultline::vgpu
