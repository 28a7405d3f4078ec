#include "process/witness.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "base/descriptor.h"
#include "process/signals.h"

namespace faultline::process {

std::int64_t now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

namespace {

constexpr std::int64_t kPatienceNs = 20'000'000;         // a group is told in one go, within microseconds
constexpr std::int64_t kMostPatienceNs = 2'000'000'000;  // for a witness that does not get to run on a busy machine
constexpr int kLookAgainMs = 5;
// of two that come at once a process hears one: what is left over counts no more
constexpr std::int64_t kStaleNs = 500'000'000;
constexpr timespec kLook = {0, 50'000'000};

struct Told {
  std::int64_t when_ns = 0;
  int signal = 0;
};

bool is_stop(int signal) { return signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU; }

// The beginning of /proc/PID/name, ended by a zero; false: there is no such process.
template <std::size_t size>
bool read_about(pid_t process, const char* name, char (&text)[size]) {
  char path[40];
  std::snprintf(path, sizeof path, "/proc/%d/%s", static_cast<int>(process), name);
  const Descriptor file(::open(path, O_RDONLY | O_CLOEXEC));
  const ssize_t got = file ? ::read(file.number(), text, size - 1) : 0;
  text[std::max<ssize_t>(got, 0)] = 0;
  return got > 0;
}

// It has told all that it has got: it sleeps, and nothing waits for it. Also where /proc does not say.
bool has_told_all(pid_t process) {
  char text[4096];
  if (!read_about(process, "status", text)) return true;
  const char* state = std::strstr(text, "\nState:");
  const char* waiting = std::strstr(text, "\nShdPnd:");
  if (state == nullptr || waiting == nullptr) return true;
  state += std::strlen("\nState:");
  return state[std::strspn(state, " \t")] == 'S' && std::strtoull(waiting + std::strlen("\nShdPnd:"), nullptr, 16) == 0;
}

// All signals are blocked here, by the caller of fork().
[[noreturn]] void be_witness(int to, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(0);
  ::prctl(PR_SET_NAME, "faultline-group");
  // Nothing of the program's is kept open here.
  const int kept = ::fcntl(to, F_DUPFD_CLOEXEC, 3);
  if (kept < 0) ::_exit(0);
  ::close_range(0, static_cast<unsigned>(kept) - 1, 0);
  ::close_range(static_cast<unsigned>(kept) + 1, ~0u, 0);
  sigset_t all;
  ::sigfillset(&all);
  pid_t watched = 0;
  for (;;) {
    siginfo_t about{};
    const int signal = watched == 0 ? ::sigwaitinfo(&all, &about) : ::sigtimedwait(&all, &about, &kLook);
    if (signal == SIGRTMAX && about.si_pid == parent && about.si_code == SI_QUEUE) {
      watched = about.si_value.sival_int;
    } else if (signal > 0 && (about.si_code <= 0 || is_stop(signal))) {
      const Told told{now_ns(), signal};
      (void)!::write(kept, &told, sizeof told);
    }
    if (watched != 0 && !is_stopped(watched) && is_stopped(parent)) ::kill(parent, SIGCONT);
  }
}

}  // namespace

bool is_stopped(pid_t process) {
  char text[512];
  const char* const end_of_name = read_about(process, "stat", text) ? std::strrchr(text, ')') : nullptr;
  return end_of_name != nullptr && end_of_name[1] != 0 && (end_of_name[2] == 'T' || end_of_name[2] == 't');
}

std::unique_ptr<Witness> Witness::begin() {
  int pipe[2];
  if (::pipe2(pipe, O_CLOEXEC | O_NONBLOCK) != 0) return nullptr;
  const pid_t parent = ::getpid();
  pid_t process = -1;
  {
    const SignalsHeld held;
    process = ::fork();
    if (process == 0) be_witness(pipe[1], parent);
  }
  ::close(pipe[1]);
  if (process < 0) {
    ::close(pipe[0]);
    return nullptr;
  }
  return std::unique_ptr<Witness>(new Witness(process, pipe[0]));
}

Witness::~Witness() {
  ::kill(process_, SIGKILL);
  while (::waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
  }
  ::close(from_);
}

void Witness::hear() {
  for (Told told; ::read(from_, &told, sizeof told) == static_cast<ssize_t>(sizeof told);) {
    if (is_stop(told.signal)) last_stop_ns_ = told.when_ns;
    Seen& seen = seen_[static_cast<std::size_t>(told.signal)];
    if (told.when_ns - seen.last_ns > kStaleNs) seen.times = 0;
    ++seen.times;
    seen.last_ns = told.when_ns;
  }
}

bool Witness::saw(int signal, std::int64_t when_ns) {
  Seen& wanted = seen_[static_cast<std::size_t>(signal)];
  const std::int64_t begin_ns = now_ns();
  for (bool is_last = false;;) {
    hear();
    if (wanted.times > 0 && wanted.last_ns > begin_ns - kStaleNs) {
      --wanted.times;
      return true;
    }
    if (signal == SIGCONT && last_stop_ns_ > when_ns - kPatienceNs) return true;
    const std::int64_t waited_ns = now_ns() - begin_ns;
    if (is_last || waited_ns > kMostPatienceNs) return false;
    is_last = waited_ns > kPatienceNs && has_told_all(process_);  // then once more: it may have told it just before
    pollfd ready{from_, POLLIN, 0};
    if (!is_last) (void)::poll(&ready, 1, kLookAgainMs);
  }
}

void Witness::watch(pid_t process) const {
  sigval value{};
  value.sival_int = process;
  ::sigqueue(process_, SIGRTMAX, value);
}

}  // namespace faultline::process
