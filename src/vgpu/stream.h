// Streams that run: each has a queue, and a thread of its own while there is work.
//
// An operation runs after the one before it in its stream, and after the completions it was given (events of other streams). The legacy default
// stream of a context and its blocking streams wait for each other, both as of the moment of the call; non-blocking streams stand aside. All of
// this order is fixed at the call, under one lock (order_lock), so it is the same whatever the threads' timing.
//
// A thread leaves when its stream has been idle for a moment and comes back with the next operation: destroyed streams drain by themselves, and a
// program that exits has nobody to wait for.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "driver/functions.h"

namespace faultline::vgpu {

class Context;
struct CaptureSequence;
struct GraphNode;

// Something that happens once, and can be waited for.
class Completion {
 public:
  bool done() const { return done_.load(std::memory_order_acquire) != 0; }
  void wait() const {
    while (!done()) done_.wait(0, std::memory_order_acquire);
  }
  void finish() {
    done_.store(1, std::memory_order_release);
    done_.notify_all();
  }

 private:
  std::atomic<std::uint32_t> done_{0};
};
using CompletionPointer = std::shared_ptr<Completion>;

// Guards the order of operations: every stream's last operation, events' records, captures and graphs. Never held while something is waited for.
[[nodiscard]] std::unique_lock<std::mutex> order_lock();

constexpr int kLeastPriority = 0, kGreatestPriority = -5;

enum class StreamRole : std::uint8_t { kLegacyDefault, kPerThreadDefault, kCreated };

class Stream : public std::enable_shared_from_this<Stream> {
 public:
  Stream(Context& context, StreamRole role, unsigned flags, int priority);

  // The order lock is held. `run` is called on the stream's thread, after all of `after`.
  CompletionPointer push(std::function<void()> run, std::vector<CompletionPointer> after = {});
  // What was pushed last; null: nothing ever was. The order lock is held.
  const CompletionPointer& last() const { return last_; }
  bool blocking() const { return (flags & CU_STREAM_NON_BLOCKING) == 0; }

  Context& context;  // outlives the stream: contexts are never deleted, only ended
  const StreamRole role;
  const unsigned flags;
  const int priority;
  const std::uint64_t id;

  // Capture (capture.h), under the order lock.
  std::shared_ptr<CaptureSequence> capture;
  std::vector<GraphNode*> capture_frontier;

 private:
  struct Work {
    std::function<void()> run;
    std::vector<CompletionPointer> after;
    CompletionPointer completion;
  };
  void work();
  void start_thread();

  CompletionPointer last_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Work> queue_;
  bool has_thread_ = false;
};
using StreamPointer = std::shared_ptr<Stream>;

// The stream a call means: a handle, or one of the default streams of the current context. Refuses what is none.
StreamPointer require_stream(CUstream handle);
CUstream create_stream(Context& context, unsigned flags, int priority);
void destroy_stream(CUstream handle);
void forget_streams_of(const Context& context);

}  // namespace faultline::vgpu
