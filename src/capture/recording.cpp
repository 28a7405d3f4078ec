// When recording begins, is on, and ends: the process's one Recorder and each thread's way to it.
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <thread>

#include "base/check.h"
#include "capture/recorder.h"

namespace faultline::capture {
namespace {

enum class State : int {
  kNotBegun,
  kOn,
  kEnded,  // before the process: what was recorded is still closed at its end
  kOff,
};
std::atomic<State> state{State::kNotBegun};
std::atomic<Recorder*> the_recorder{nullptr};
std::mutex beginning;
std::atomic<int> exit_status{0};
SharedRoom* room = nullptr;  // attached once; a forked child has it too
pthread_key_t thread_end;
// One word of thread-local storage, of the kind that also a library loaded late can have.
__attribute__((tls_model("initial-exec"))) thread_local ThreadRecorder* this_thread = nullptr;

struct BrokenInvariant {
  char words[128];
};
[[noreturn]] void throw_broken(const char* condition, const char* file, int line) {
  BrokenInvariant broken;
  std::snprintf(broken.words, sizeof broken.words, "an internal error of Faultline (%s, %s:%d)", condition, file, line);
  throw broken;
}

void end_recording(const char* why) noexcept {
  State on = State::kOn;
  if (!state.compare_exchange_strong(on, State::kEnded)) {
    State none = State::kNotBegun;  // it could not even begin
    state.compare_exchange_strong(none, State::kOff);
    return;
  }
  the_recorder.load()->ends(why);
}

void end_thread(void* thread) {
  this_thread = nullptr;
  guarded([&] {
    if (state.load() == State::kOn) the_recorder.load()->leave_thread(static_cast<ThreadRecorder*>(thread));
  });
}

// The child's threads, trace and allocations are not its parent's. Nothing inherited is touched, not even to free it.
void begin_anew_in_child() {
  this_thread = nullptr;
  the_recorder.store(nullptr);
  new (&beginning) std::mutex;
  if (state.load() == State::kEnded) state.store(State::kOff);
  if (state.load() != State::kOn) return;
  state.store(State::kNotBegun);
  guarded([] {
    ::pthread_setspecific(thread_end, nullptr);
    forget_python_after_fork();
  });
}

// Opened for one sentence and closed again. The program's own files may not be written to, so no descriptor is kept.
void leave_note(const char* folder, const char* why) {
  char path[4096], sentence[512];
  const int path_length = std::snprintf(path, sizeof path, "%s/notes-%d.txt", folder, ::getpid());
  const int length =
      std::snprintf(sentence, sizeof sentence, "nothing was recorded of process %d: %s\n", ::getpid(), why);
  if (path_length >= static_cast<int>(sizeof path) || length >= static_cast<int>(sizeof sentence)) return;
  const int file = ::open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0) return;
  (void)!::write(file, sentence, static_cast<std::size_t>(length));
  ::close(file);
}

void begin() {
  const std::lock_guard hold(beginning);
  if (state.load() != State::kNotBegun) return;
  const char* const folder = std::getenv("FAULTLINE_RUN_FOLDER");
  const char* const segment = std::getenv(kRoomVariable);
  if (folder == nullptr || *folder == '\0' || segment == nullptr) {
    state.store(State::kOff);
    return;
  }
  set_check_handler(throw_broken);
  static const bool has_status = ::on_exit([](int status, void*) { exit_status.store(status); }, nullptr) == 0;
  (void)has_status;
  static const bool prepared = ::pthread_key_create(&thread_end, end_thread) == 0 &&
                               ::pthread_atfork(nullptr, nullptr, begin_anew_in_child) == 0;
  const char* why = "there is no memory left to begin with";
  if (prepared && room == nullptr) room = RoomSpace::attach(std::atoi(segment), why);
  // it outlives every thread
  RoomSpace* const space = prepared && room != nullptr ? RoomSpace::begin(*room, now_ns()).release() : nullptr;
  if (space == nullptr) {
    leave_note(folder, room != nullptr ? "too many processes are recorded already" : why);
    state.store(State::kOff);
    return;
  }
  try {
    the_recorder.store(new Recorder(*space));
  } catch (...) {
    space->recording_ends(now_ns(), "the program's memory ran out");
    throw;
  }
  state.store(State::kOn);
}

ThreadRecorder* join() {
  if (state.load() == State::kNotBegun) begin();
  if (state.load() != State::kOn) return nullptr;
  ThreadRecorder* const thread = the_recorder.load()->join_thread();
  if (::pthread_setspecific(thread_end, thread) != 0) throw std::bad_alloc();
  return this_thread = thread;
}

// With the core dump armed (run --core-dump) the driver ends the program for a fault up to a moment after the program was told that all went well (seen with
// driver 580 for an address that is not mapped: 0.1 s). A program that ends sooner would end as if nothing had happened. A Python program waits in Python, where
// its threads are still what they were.
void let_core_dump_begin() {
  if (python_state() == PythonState::kNoPython) std::this_thread::sleep_for(std::chrono::seconds(1));
}

__attribute__((destructor)) void end() {
  const State before = state.exchange(State::kOff);
  if (before == State::kOn || before == State::kEnded)
    guarded([before] { the_recorder.load()->finish(before == State::kOn, exit_status.load()); });
}

}  // namespace

void first_launch_was_made() {
  const char* armed = std::getenv("FAULTLINE_CORE_DUMP_ARMED");
  // so late that it runs before the driver's own
  if (armed != nullptr && *armed == '1') std::atexit(let_core_dump_begin);
}

bool recording_is_on() { return state.load(std::memory_order_relaxed) == State::kOn; }

void recording_failed() noexcept {
  try {
    throw;
  } catch (const EndOfRecording& end) {
    end_recording(end.why);
  } catch (const BrokenInvariant& broken) {
    end_recording(broken.words);
  } catch (const std::bad_alloc&) {
    end_recording("the program's memory ran out");
  } catch (...) {
    end_recording("an internal error of Faultline");
  }
}

Recording::Recording(Inside inside) : errno_(errno) {
  ThreadRecorder* thread = this_thread;
  if (thread == nullptr) [[unlikely]]
    guarded([&] { thread = join(); });
  if (thread == nullptr || (thread->inside_ && inside == Inside::kNot)) return;
  if (!recording_is_on()) return;
  was_inside_ = thread->inside_;
  thread->inside_ = true;
  thread_ = thread;
}

Recording::~Recording() {
  if (thread_ != nullptr) thread_->inside_ = was_inside_;
  errno = errno_;
}

}  // namespace faultline::capture
