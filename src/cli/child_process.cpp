#include "cli/child_process.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>

extern char** environ;

namespace faultline::cli {
namespace {

volatile std::sig_atomic_t was_interrupted = 0;
void note_interrupt(int) { was_interrupted = 1; }
struct sigaction before_interrupts {};

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

std::vector<std::string>::iterator Environment::find(const std::string& name) {
  return std::find_if(entries_.begin(), entries_.end(), [&](const std::string& entry) { return entry.starts_with(name) && entry.size() > name.size() && entry[name.size()] == '='; });
}

bool Environment::has(const std::string& name) const { return const_cast<Environment*>(this)->find(name) != entries_.end(); }

void Environment::set(const std::string& name, const std::string& value) {
  const auto at = find(name);
  if (at == entries_.end()) entries_.push_back(name + "=" + value);
  else *at = name + "=" + value;
}

void Environment::set_unless_there(const std::string& name, const std::string& value) {
  if (!has(name)) set(name, value);
}

void Environment::prepend(const std::string& name, const std::string& value, char separator) {
  const auto at = find(name);
  const std::string before = at == entries_.end() ? std::string() : at->substr(name.size() + 1);
  set(name, before.empty() ? value : value + separator + before);
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
  if (problem == 0) return process;
  return Error{command.front() + (problem == ENOENT ? " was not found" : problem == EACCES ? " is not executable" : std::string(" could not be started: ") + std::strerror(problem)), {}, {}};
}

ProgramEnd wait_for_program(pid_t process) {
  const auto begin = std::chrono::steady_clock::now();
  int status = 0;
  pid_t ended = 0;
  do ended = ::waitpid(process, &status, 0);
  while (ended < 0 && errno == EINTR);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (ended < 0) return {127, seconds};
  return {WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status), seconds};
}

InterruptsNoted::InterruptsNoted() {
  struct sigaction noted {};
  noted.sa_handler = note_interrupt;
  ::sigaction(SIGINT, nullptr, &before_interrupts);
  if (before_interrupts.sa_handler != SIG_IGN) ::sigaction(SIGINT, &noted, nullptr);
}

InterruptsNoted::~InterruptsNoted() { ::sigaction(SIGINT, &before_interrupts, nullptr); }

bool interrupted() { return was_interrupted != 0; }

}  // namespace faultline::cli
