#include "vgpu/stream.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>

#include <chrono>
#include <thread>

#include "vgpu/call.h"
#include "vgpu/context.h"
#include "vgpu/handles.h"

namespace faultline::vgpu {
namespace {

constexpr std::chrono::milliseconds kIdleTime{300};

Handles<CUstream, Stream>& streams() { return Handles<CUstream, Stream>::get(); }

std::uint64_t next_stream_id() {
  static std::atomic<std::uint64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

// Threads of ours run code of this library: it must stay even if the program closes it.
void keep_library_loaded() {
  static const bool kept = [] {
    Dl_info here{};
    return dladdr(reinterpret_cast<void*>(&keep_library_loaded), &here) != 0 &&
           dlopen(here.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE) != nullptr;
  }();
  static_cast<void>(kept);
}

// The program's signal handlers are not for our threads.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

}  // namespace

std::unique_lock<std::mutex> order_lock() {
  static auto& mutex = *new std::mutex;
  return std::unique_lock(mutex);
}

Stream::Stream(Context& context_, StreamRole role_, unsigned flags_, int priority_)
    : context(context_), role(role_), flags(flags_), priority(priority_), id(next_stream_id()) {}

CompletionPointer Stream::push(std::function<void()> run, std::vector<CompletionPointer> after) {
  context.add_implicit_waits(*this, after);
  std::erase_if(after, [](const CompletionPointer& completion) { return completion == nullptr || completion->done(); });
  const auto completion = std::make_shared<Completion>();
  {
    const std::lock_guard lock(mutex_);
    if (!has_thread_) start_thread();
    queue_.push_back({std::move(run), std::move(after), completion});
  }
  wake_.notify_one();
  last_ = completion;
  return completion;
}

void Stream::start_thread() {
  keep_library_loaded();
  const SignalsBlocked blocked;
  std::thread([self = shared_from_this()] { self->work(); }).detach();
  has_thread_ = true;
}

void Stream::work() {
  for (;;) {
    Work next;
    {
      std::unique_lock lock(mutex_);
      const auto until = std::chrono::system_clock::now() + kIdleTime;
      if (!wake_.wait_until(lock, until, [this] { return !queue_.empty(); })) {
        has_thread_ = false;
        return;
      }
      next = std::move(queue_.front());
      queue_.pop_front();
    }
    for (const CompletionPointer& completion : next.after) completion->wait();
    if (exiting()) return;
    if (next.run) next.run();
    next.run = nullptr;  // what it holds is let go before anybody is told
    next.completion->finish();
  }
}

StreamPointer require_stream(CUstream handle) {
  const bool zero_per_thread = handle == nullptr && stream_zero() == driver::StreamKind::kPerThread;
  if (handle == CU_STREAM_PER_THREAD || zero_per_thread) return require_context()->per_thread_stream();
  if (handle == nullptr || handle == CU_STREAM_LEGACY) return require_context()->legacy_stream();
  return streams().require(handle, CUDA_ERROR_INVALID_HANDLE);
}

CUstream create_stream(Context& context, unsigned flags, int priority) {
  const auto stream = std::make_shared<Stream>(context, StreamRole::kCreated, flags, priority);
  context.add_stream(stream);
  return streams().insert(stream);
}

void destroy_stream(CUstream handle) { require(streams().remove(handle) != nullptr, CUDA_ERROR_INVALID_HANDLE); }

void forget_streams_of(const Context& context) {
  streams().remove_if([&](const Stream& stream) { return &stream.context == &context; });
}

}  // namespace faultline::vgpu
