// Signals while the user's program runs: what a process sends to Faultline alone is meant for the program, and reaches it exactly once.
//
//   the terminal (Ctrl-C, Ctrl-\, Ctrl-Z, a new size)   the kernel tells the whole foreground group: the program has it already
//   kill -INT -GROUP, kill %1, timeout's second one      likewise
//   kill -INT FAULTLINE, a supervisor, a batch system    Faultline alone has it: handed on
//
// A signal does not say whether it was sent to a group. So a second process of Faultline's own, the witness, sits in the group and does nothing but tell
// which signals reach it too. It dies with Faultline. It also wakes Faultline where that has stopped together with the program and somebody
// continued the program alone.
//
// SIGKILL and SIGSTOP cannot be heard, so they are not handed on.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace faultline::process {

class Ending;

// Faultline ignores closed pipes and limits on a file's size (they are errors of a write to it); programs are started with what was there before.
void ignore_closed_pipes();

// While one of these lives, signals are the program's; one inside of another adds nothing.
class InterruptsNoted {
 public:
  InterruptsNoted();
  ~InterruptsNoted();
  InterruptsNoted(const InterruptsNoted&) = delete;
  InterruptsNoted& operator=(const InterruptsNoted&) = delete;
};

// Somebody asked for an end (SIGINT, SIGTERM, SIGHUP, SIGQUIT), so nothing more should be started.
bool interrupted();
int interrupts();  // how often

// --- for child_process.cpp and apart.cpp ---

// A child made by fork() inside of one of these hears no signal until it has called be_as_before().
class SignalsHeld {
 public:
  SignalsHeld();
  ~SignalsHeld();
  SignalsHeld(const SignalsHeld&) = delete;
  SignalsHeld& operator=(const SignalsHeld&) = delete;
};
// In the child: dispositions and mask as Faultline itself was started with. Only async-signal-safe calls.
void be_as_before();

// Quiet programs: what asks Faultline to end ends them too. While one of these lives no signal is handed on to any of them, by whichever thread: a
// program is started and made known, and forgotten and waited for, in one go, so that none is missed and no number is used after its time.
class QuietHeld {
 public:
  QuietHeld();
  ~QuietHeld();
  void begin(pid_t process);
  void end(pid_t process);

 private:
  SignalsHeld signals_;
};

enum class Listening : std::uint8_t {
  kHandOn,  // to the process
  kEndIt    // whoever asks for an end ends the process, and nothing is handed on
};
// Waits for the child's end, in company: stops when it stops. The wait status, or -1 when it was lost. Notes of signals that came earlier count with
// kHandOn (the program was just being started), not with kEndIt.
// `ending`: ends a program that does not end by itself.
int wait_listening(pid_t process, Listening listening, Ending* ending = nullptr);

}  // namespace faultline::process
