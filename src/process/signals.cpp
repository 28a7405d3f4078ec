#include "process/signals.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <memory>

#include "process/ending.h"
#include "process/witness.h"

namespace faultline::process {
namespace {

// What a process may tell another by signals. Those that the kernel sends for a fault of the process's own are not among them.
constexpr std::array kNamed = {SIGINT,   SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2,   SIGALRM, SIGTSTP,   SIGCONT,
                               SIGWINCH, SIGXCPU, SIGPWR,  SIGIO,  SIGURG,  SIGVTALRM, SIGPROF, SIGSTKFLT, SIGABRT};

struct Note {
  int signal = 0;
  int code = 0;
  pid_t sender = 0;
  int value = 0;
  std::int64_t when_ns = 0;
};

constexpr bool asks_for_end(int signal) {
  return signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT;
}
constexpr bool from_process(const Note& note) {
  return note.code <= 0;
}  // SI_USER, SI_QUEUE, SI_TKILL; the kernel's own are above

std::atomic<int> was_interrupted{0};
int noting = 0;  // those that are there, one inside the other
std::atomic<int> notes_to{-1};
int notes_from = -1;
std::array<pid_t, 256> quiet{};  // guarded by quiet_is_held
// by a thread that hears no signals meanwhile, so a handler waits for another thread at most
std::atomic_flag quiet_is_held;
constexpr std::array kIgnored = {SIGPIPE, SIGXFSZ};  // from the start on
std::array<struct sigaction, NSIG> before{};         // by signal
std::array<bool, NSIG> changed{};
std::unique_ptr<Witness> witness;
thread_local sigset_t mask_before;  // of SignalsHeld
thread_local bool is_mask_held = false;
bool child_was_blocked = false;  // SIGCHLD, by whoever started us

template <class Do>
void for_handled(Do what) {
  for (const int signal : kNamed) what(signal);
  what(SIGCHLD);
  for (const int signal : kIgnored) what(signal);
  for (int signal = SIGRTMIN; signal <= SIGRTMAX; ++signal) what(signal);
}

// Who does not hear of a program's end waits for ever; the program itself gets the mask that we were given.
void hear_of_children() {
  sigset_t child, had;
  ::sigemptyset(&child);
  ::sigaddset(&child, SIGCHLD);
  if (::pthread_sigmask(SIG_UNBLOCK, &child, &had) == 0 && ::sigismember(&had, SIGCHLD) == 1) child_was_blocked = true;
}

bool is_ignored(int signal) { return std::find(kIgnored.begin(), kIgnored.end(), signal) != kIgnored.end(); }

void ignore(bool is_first) {
  struct sigaction ignored {};
  ignored.sa_handler = SIG_IGN;
  for (const int signal : kIgnored) {
    const auto at = static_cast<std::size_t>(signal);
    const bool done = ::sigaction(signal, &ignored, is_first ? &before[at] : nullptr) == 0;
    changed[at] = done || (!is_first && changed[at]);
  }
}

void restore(int signal) {
  const auto at = static_cast<std::size_t>(signal);
  if (changed[at]) ::sigaction(signal, &before[at], nullptr);
}

void hold_quiet() {
  while (quiet_is_held.test_and_set()) ::sched_yield();
}

void note_signal(int signal, siginfo_t* about, void*) {
  const int kept = errno;
  const Note note{signal, about->si_code, about->si_pid, about->si_value.sival_int, now_ns()};
  if (asks_for_end(signal)) {
    ++was_interrupted;
    hold_quiet();
    for (const pid_t process : quiet) {
      if (process > 0 && from_process(note)) ::kill(process, signal);
    }
    quiet_is_held.clear();
  }
  if (const int to = notes_to.load(); to >= 0) (void)!::write(to, &note, sizeof note);
  errno = kept;
}

bool next_note(Note& note, int wait_ms) {
  pollfd ready{notes_from, POLLIN, 0};
  if (::poll(&ready, 1, wait_ms) <= 0) return false;
  return ::read(notes_from, &note, sizeof note) == static_cast<ssize_t>(sizeof note);
}

void hand_on(pid_t process, const Note& note) {
  // A closed pipe or a file that is too large is told by the kernel in the process's own name.
  if (!from_process(note) || note.signal == SIGCHLD || note.sender == process || note.sender == ::getpid()) return;
  if (witness != nullptr && (note.sender == witness->process() || witness->saw(note.signal, note.when_ns))) return;
  if (note.code == SI_QUEUE) {
    sigval value{};
    value.sival_int = note.value;
    ::sigqueue(process, note.signal, value);
  } else {
    ::kill(process, note.signal);
  }
}

// The program has stopped: whoever waits for Faultline must see a stop of the same kind.
void stop_along(pid_t process, int signal) {
  if (witness == nullptr && signal == SIGSTOP) return;  // nobody would wake us
  if (witness != nullptr) witness->watch(process);
  struct sigaction usual {};
  struct sigaction ours {};
  usual.sa_handler = SIG_DFL;
  const bool is_ours = changed[static_cast<std::size_t>(signal)];
  if (is_ours) ::sigaction(signal, &usual, &ours);
  ::raise(signal);
  if (is_ours) ::sigaction(signal, &ours, nullptr);
  if (witness != nullptr) witness->watch(0);
}

}  // namespace

void ignore_closed_pipes() { ignore(true); }

InterruptsNoted::InterruptsNoted() {
  if (noting++ > 0) return;
  int pipe[2];
  if (::pipe2(pipe, O_CLOEXEC | O_NONBLOCK) == 0) {
    notes_from = pipe[0];
    notes_to = pipe[1];
  }
  witness = Witness::begin();
  hear_of_children();
  for_handled([](int signal) {
    const auto at = static_cast<std::size_t>(signal);
    if (!is_ignored(signal)) ::sigaction(signal, nullptr, &before[at]);  // else ignore_closed_pipes() has it
    // What is ignored stays so, for Faultline as for the program; but an ignored SIGCHLD would lose the program's status.
    if (before[at].sa_handler == SIG_IGN && signal != SIGCHLD) return;
    struct sigaction noted {};
    noted.sa_sigaction = note_signal;
    noted.sa_flags = SA_SIGINFO | SA_RESTART;
    ::sigfillset(&noted.sa_mask);
    changed[at] = ::sigaction(signal, &noted, nullptr) == 0;
  });
}

InterruptsNoted::~InterruptsNoted() {
  if (--noting > 0) return;
  for_handled([](int signal) {
    if (is_ignored(signal)) return;
    restore(signal);
    changed[static_cast<std::size_t>(signal)] = false;
  });
  ignore(false);
  witness.reset();
  if (const int to = notes_to.exchange(-1); to >= 0) {
    ::close(to);
    ::close(notes_from);
  }
  notes_from = -1;
}

bool interrupted() { return was_interrupted != 0; }
int interrupts() { return was_interrupted; }

SignalsHeld::SignalsHeld() {
  sigset_t all;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &mask_before);
  is_mask_held = true;
}
SignalsHeld::~SignalsHeld() {
  ::pthread_sigmask(SIG_SETMASK, &mask_before, nullptr);
  is_mask_held = false;
}

void be_as_before() {
  for_handled(restore);
  for (const int signal : kIgnored) restore(signal);
  if (!is_mask_held) ::pthread_sigmask(SIG_SETMASK, nullptr, &mask_before);
  if (child_was_blocked) ::sigaddset(&mask_before, SIGCHLD);
  ::pthread_sigmask(SIG_SETMASK, &mask_before, nullptr);
}

QuietHeld::QuietHeld() { hold_quiet(); }
QuietHeld::~QuietHeld() { quiet_is_held.clear(); }

void QuietHeld::begin(pid_t process) {
  const auto none = std::find(quiet.begin(), quiet.end(), 0);
  if (none != quiet.end()) *none = process;
}

void QuietHeld::end(pid_t process) { std::replace(quiet.begin(), quiet.end(), process, 0); }

int wait_listening(pid_t process, Listening listening, Ending* ending) {
  Note note;
  if (listening == Listening::kEndIt) {
    while (notes_from >= 0 && next_note(note, 0)) {
    }
  }
  for (int stop = SIGTSTP;;) {
    int status = 0;
    const pid_t changed_state = ::waitpid(process, &status, notes_from >= 0 ? WNOHANG | WUNTRACED : 0);
    if (changed_state < 0 && errno != EINTR) return -1;
    if (changed_state == process && !WIFSTOPPED(status)) return status;
    if (changed_state == process) {
      stop = WSTOPSIG(status);
      stop_along(process, stop);
      continue;
    }
    if (ending != nullptr) ending->look();
    if (notes_from < 0 || !next_note(note, ending != nullptr ? Ending::kLookEveryMs : -1)) continue;
    const bool woken = witness != nullptr && note.signal == SIGCONT && note.sender == witness->process();
    if (woken && is_stopped(process))  // the witness saw it go on, and it stopped again before we were woken
      stop_along(process, stop);
    else if (listening == Listening::kHandOn)
      hand_on(process, note);
    else if (asks_for_end(note.signal))
      ::kill(process, SIGKILL);
  }
}

}  // namespace faultline::process
