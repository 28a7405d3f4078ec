#include "cli/child_process.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>

extern char** environ;

namespace faultline::cli {
namespace {

volatile std::sig_atomic_t was_interrupted = 0;
volatile pid_t in_foreground = 0;
volatile std::sig_atomic_t came_early = 0;  // a signal for a program that was just being started
void note_interrupt(int) { was_interrupted = 1; }
void hand_on(int signal) {
  if (in_foreground > 0) ::kill(in_foreground, signal);
  else came_early = signal;
}

constexpr std::array<int, 5> kSignals = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};
std::array<struct sigaction, kSignals.size()> before_signals{};

std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

Environment::Environment() {
  for (char** entry = environ; *entry != nullptr; ++entry) entries_.emplace_back(*entry);
}

std::vector<std::string>::const_iterator Environment::find(const std::string& name) const {
  return std::find_if(entries_.begin(), entries_.end(), [&](const std::string& entry) { return entry.starts_with(name) && entry.size() > name.size() && entry[name.size()] == '='; });
}

bool Environment::has(const std::string& name) const { return find(name) != entries_.end(); }

std::string Environment::value(const std::string& name) const {
  const auto at = find(name);
  return at == entries_.end() ? std::string() : at->substr(name.size() + 1);
}

void Environment::set(const std::string& name, const std::string& value) {
  const auto at = find(name);
  if (at == entries_.end()) entries_.push_back(name + "=" + value);
  else entries_[static_cast<std::size_t>(at - entries_.begin())] = name + "=" + value;
}

void Environment::set_unless_there(const std::string& name, const std::string& value) {
  if (!has(name)) set(name, value);
}

void Environment::prepend(const std::string& name, const std::string& value, char separator) {
  const std::string before = this->value(name);
  set(name, before.empty() ? value : value + separator + before);
}

void Environment::append(const std::string& name, const std::string& value, char separator) {
  const std::string before = this->value(name);
  set(name, before.empty() ? value : before + separator + value);
}

Result<pid_t> start_program(std::vector<std::string> command, Environment environment, Output output, const std::string& log) {
  std::vector<char*> arguments = pointers_to(command), variables = pointers_to(environment.entries());
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawnattr_init(&attributes);
  // Faultline ignores closed pipes for itself; the program starts as it would from a shell.
  sigset_t as_usual;
  ::sigemptyset(&as_usual);
  ::sigaddset(&as_usual, SIGPIPE);
  ::posix_spawnattr_setsigdefault(&attributes, &as_usual);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  if (!log.empty()) {
    ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    ::posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  } else if (output == Output::kToStandardError) {
    ::posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  }
  pid_t process = -1;
  const int problem = ::posix_spawnp(&process, command.front().c_str(), &actions, &attributes, arguments.data(), variables.data());
  ::posix_spawn_file_actions_destroy(&actions);
  ::posix_spawnattr_destroy(&attributes);
  if (problem == 0) {
    if (log.empty()) {
      in_foreground = process;
      if (came_early != 0) ::kill(process, came_early);
      came_early = 0;
    }
    return process;
  }
  return Error{command.front() + (problem == ENOENT ? " was not found" : problem == EACCES ? " is not executable" : std::string(" could not be started: ") + std::strerror(problem)), {}, {}};
}

ProgramEnd wait_for_program(pid_t process) {
  const auto begin = std::chrono::steady_clock::now();
  int status = 0;
  pid_t ended = 0;
  do ended = ::waitpid(process, &status, 0);
  while (ended < 0 && errno == EINTR);
  if (process == in_foreground) in_foreground = 0;
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (ended < 0) return {127, seconds};
  return {WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status), seconds};
}

InterruptsNoted::InterruptsNoted() {
  for (std::size_t at = 0; at < kSignals.size(); ++at) {
    struct sigaction noted {};
    noted.sa_handler = kSignals[at] == SIGINT ? note_interrupt : hand_on;
    ::sigaction(kSignals[at], nullptr, &before_signals[at]);
    if (before_signals[at].sa_handler != SIG_IGN) ::sigaction(kSignals[at], &noted, nullptr);
  }
}

InterruptsNoted::~InterruptsNoted() {
  for (std::size_t at = 0; at < kSignals.size(); ++at) ::sigaction(kSignals[at], &before_signals[at], nullptr);
}

bool interrupted() { return was_interrupted != 0; }

}  // namespace faultline::cli
