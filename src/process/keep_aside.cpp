#include "process/keep_aside.h"

#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <csignal>

#include "confine/confined_program.h"
#include "process/effects.h"
#include "process/hint.h"

extern char** environ;

namespace faultline::process {
namespace {

constexpr std::array<int, 7> kHandedOn = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM};

const int kParentGone = SIGRTMAX - 3;  // nobody else sends it here

volatile pid_t watched = 0;
int watched_handle = -1;  // stays the program's where its number may not
volatile std::sig_atomic_t came_early = 0;
pid_t parent = 0;

void tell_program(int signal) {
  if (watched_handle >= 0)
    ::syscall(SYS_pidfd_send_signal, watched_handle, signal, nullptr, 0);
  else
    ::kill(watched, signal);
}

void hand_on(int signal, siginfo_t* origin, void*) {
  if (origin->si_code > 0 || origin->si_pid != parent) return;
  if (origin->si_code == SI_QUEUE && origin->si_value.sival_int == kByForce) signal = SIGKILL;
  if (watched > 0)
    tell_program(signal);
  else
    came_early = signal;
}

// Faultline is gone, however: nobody will read what the program does.
void end_program(int, siginfo_t*, void*) {
  came_early = SIGKILL;
  if (watched > 0) tell_program(SIGKILL);
}

void listen_to_parent() {
  parent = ::getppid();
  struct sigaction gone {};
  gone.sa_sigaction = end_program;
  gone.sa_flags = SA_SIGINFO;
  ::sigaction(kParentGone, &gone, nullptr);
  ::prctl(PR_SET_PDEATHSIG, kParentGone);
  for (const int signal : kHandedOn) {
    struct sigaction before {
    }, handed{};
    handed.sa_sigaction = hand_on;
    handed.sa_flags = SA_SIGINFO;
    ::sigaction(signal, nullptr, &before);
    if (before.sa_handler != SIG_IGN) ::sigaction(signal, &handed, nullptr);
  }
}

}  // namespace

Result<ProgramEnd> keep_aside(const AsideArguments& arguments) {
  confine::Program program;
  program.command = arguments.command;
  for (char** entry = environ; *entry != nullptr; ++entry) program.environment.emplace_back(*entry);
  program.aside = arguments.aside;
  program.own_folder = arguments.own_folder;
  program.offline = arguments.offline;
  program.keep_input = arguments.keep_input;
  program.in_child = be_as_before;
  listen_to_parent();
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);  // who loses its parent is ours to see to its end
  Result<std::unique_ptr<confine::ConfinedProgram>> confined = confine::ConfinedProgram::start(std::move(program));
  if (!confined) return confined.error();
  watched_handle = static_cast<int>(::syscall(SYS_pidfd_open, (*confined)->process(), 0));
  watched = (*confined)->process();
  if (came_early != 0) tell_program(came_early);
  const int status = (*confined)->wait();
  watched = 0;
  if (Status written = write_effects(arguments.effects, (*confined)->effects()); !written)
    hint(written.error().message());
  confined->reset();
  return program_end(status, 0);
}

}  // namespace faultline::process
