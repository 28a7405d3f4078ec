// keep-aside … -- CMD…: a part of `plan`, not a verb for people. Runs CMD with its changes to files kept aside, and leaves what they were in a file.
//
// It is a process of its own because watching a program takes a whole process: it stands between Faultline and the program, ends as the program
// ended, and the program dies with it. Signals that Faultline sends it are meant for the program; those that reach the whole group, the program has too.
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <csignal>

#include "cli/child_process.h"
#include "cli/effects.h"
#include "cli/options.h"
#include "confine/confined_program.h"

extern char** environ;

namespace faultline::cli {
namespace {

struct AsideArguments {
  std::vector<std::string> command;
  std::string aside, own_folder, effects, keep_input;
  bool offline = false;
};

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

int keep_aside(const AsideArguments& arguments) {
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
  if (!confined) return fail(confined.error().message());
  watched_handle = static_cast<int>(::syscall(SYS_pidfd_open, (*confined)->process(), 0));
  watched = (*confined)->process();
  if (came_early != 0) tell_program(came_early);
  const int status = (*confined)->wait();
  watched = 0;
  if (Status written = write_effects(arguments.effects, (*confined)->effects()); !written)
    hint(written.error().message());
  confined->reset();
  return end_like(program_end(status, 0));
}

}  // namespace

void add_keep_aside(CLI::App& app, const std::vector<std::string>& command, int& status) {
  CLI::App* verb = app.add_subcommand("keep-aside", "a part of plan")->group("");
  auto arguments = std::make_shared<AsideArguments>();
  arguments->command = command;
  verb->add_option("--aside", arguments->aside)->required();
  verb->add_option("--own-folder", arguments->own_folder)->required();
  verb->add_option("--effects", arguments->effects)->required();
  verb->add_option("--keep-input", arguments->keep_input);
  verb->add_flag("--offline", arguments->offline);
  verb->callback([arguments, &status] {
    status = arguments->command.empty() ? fail("keep-aside takes a program behind --") : keep_aside(*arguments);
  });
}

}  // namespace faultline::cli
