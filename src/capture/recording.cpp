// When recording begins, is on, and ends: the process's one Recorder and each thread's way to it.
#include <pthread.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <new>

#include "capture/recorder.h"

namespace faultline::capture {
namespace {

enum class State : int { kNotBegun, kOn, kOff };
std::atomic<State> state{State::kNotBegun};
std::atomic<Recorder*> the_recorder{nullptr};
std::mutex beginning;
pthread_key_t thread_end;
// One word of thread-local storage, of the kind that also a library loaded late can have.
__attribute__((tls_model("initial-exec"))) thread_local ThreadRecorder* this_thread = nullptr;

void end_thread(void* thread) {
  this_thread = nullptr;
  if (state.load() == State::kOn) the_recorder.load()->leave_thread(static_cast<ThreadRecorder*>(thread));
}

// The child's threads, file and allocations are not its parent's. Nothing inherited is touched, not even to free it.
void begin_anew_in_child() {
  this_thread = nullptr;
  the_recorder.store(nullptr);
  new (&beginning) std::mutex;
  if (state.load() == State::kOn) {
    state.store(State::kNotBegun);
    ::pthread_setspecific(thread_end, nullptr);
  }
  forget_python_after_fork();
  forget_kernels_after_fork();
  forget_memory_after_fork();
  forget_captures_after_fork();
  forget_devices_after_fork();
  forget_ranges_after_fork();
}

void leave_note(const std::string& folder, const std::string& sentence) {
  if (std::FILE* notes = std::fopen((folder + "/notes-" + std::to_string(::getpid()) + ".txt").c_str(), "a")) {
    std::fprintf(notes, "%s\n", sentence.c_str());
    std::fclose(notes);
  }
}

void begin() {
  const std::lock_guard hold(beginning);
  if (state.load() != State::kNotBegun) return;
  const char* folder = std::getenv("FAULTLINE_RUN_FOLDER");
  if (folder == nullptr || *folder == '\0') {
    state.store(State::kOff);
    return;
  }
  static const bool prepared = [] {
    ::pthread_key_create(&thread_end, end_thread);
    ::pthread_atfork(nullptr, nullptr, begin_anew_in_child);
    return true;
  }();
  (void)prepared;
  const std::string start = std::string(folder) + "/process-" + std::to_string(::getpid());
  std::string path = start + ".faultline";
  // A process that replaced itself (exec) has a trace of this name already.
  for (int again = 2; ::access(path.c_str(), F_OK) == 0 && again < 1000; ++again) path = start + "-" + std::to_string(again) + ".faultline";
  Result<std::unique_ptr<TraceFile>> file = TraceFile::create(path);
  if (!file) {
    leave_note(folder, "nothing was recorded of process " + std::to_string(::getpid()) + ": " + file.error().message(path));
    state.store(State::kOff);
    return;
  }
  the_recorder.store(new Recorder(std::move(*file)));
  state.store(State::kOn);
}

ThreadRecorder* join() {
  if (state.load() == State::kNotBegun) begin();
  if (state.load() != State::kOn) return nullptr;
  this_thread = the_recorder.load()->join_thread();
  ::pthread_setspecific(thread_end, this_thread);
  return this_thread;
}

__attribute__((destructor)) void end() {
  if (state.exchange(State::kOff) == State::kOn) the_recorder.load()->finish();
}

}  // namespace

Recording::Recording() : errno_(errno) {
  ThreadRecorder* thread = this_thread != nullptr ? this_thread : join();
  if (thread == nullptr || thread->inside_) return;
  thread->busy_.store(true, std::memory_order_relaxed);  // no fence: whoever ends the recording waits longer than a store takes to be seen
  if (state.load(std::memory_order_relaxed) != State::kOn) {
    thread->busy_.store(false, std::memory_order_relaxed);
    return;
  }
  thread->inside_ = true;
  thread_ = thread;
}

Recording::~Recording() {
  if (thread_ != nullptr) {
    thread_->inside_ = false;
    thread_->busy_.store(false, std::memory_order_release);
  }
  errno = errno_;
}

}  // namespace faultline::capture
