#include "cli/plan_run.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <thread>

extern char** environ;

namespace faultline::cli {
namespace {

volatile std::sig_atomic_t was_interrupted = 0;
void note_interrupt(int) { was_interrupted = 1; }

// While a program runs, Ctrl-C is the program's; Faultline notes it and waits on.
class InterruptsNoted {
 public:
  InterruptsNoted() {
    struct sigaction noted{};
    noted.sa_handler = note_interrupt;
    ::sigaction(SIGINT, nullptr, &before_);
    if (before_.sa_handler != SIG_IGN) ::sigaction(SIGINT, &noted, nullptr);
  }
  ~InterruptsNoted() { ::sigaction(SIGINT, &before_, nullptr); }
  InterruptsNoted(const InterruptsNoted&) = delete;
  InterruptsNoted& operator=(const InterruptsNoted&) = delete;

 private:
  struct sigaction before_{};
};

std::vector<std::string> environment_for(const PlanParts& parts, const std::string& folder) {
  std::vector<std::string> all;
  std::string python_path = parts.python + "/faultline/_inject:" + parts.python;
  const auto is = [](const char* entry, const char* name) { return std::strncmp(entry, name, std::strlen(name)) == 0 && entry[std::strlen(name)] == '='; };
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (is(*entry, "PYTHONPATH")) {
      if ((*entry)[std::strlen("PYTHONPATH=")] != '\0') python_path += ":" + std::string(*entry + std::strlen("PYTHONPATH="));
    } else if (!is(*entry, "FAULTLINE_PLAN") && !is(*entry, "MALLOC_MMAP_THRESHOLD_") && !is(*entry, "CUDA_VISIBLE_DEVICES")) {
      all.emplace_back(*entry);
    }
  }
  all.push_back("PYTHONPATH=" + python_path);
  all.push_back("FAULTLINE_PLAN=" + folder + "/plan.json");
  all.push_back("MALLOC_MMAP_THRESHOLD_=65536");  // large host tensors that nobody fills cost addresses, not memory
  all.push_back("CUDA_VISIBLE_DEVICES=");
  return all;
}

std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

struct Started {
  pid_t process = -1;
  int problem = 0;
};

Started start(const PlanParts& parts, const DryRunJob& job, bool quiet, Output output) {
  std::vector<std::string> command = job.command, environment = environment_for(parts, job.folder);
  std::vector<char*> arguments = pointers_to(command), variables = pointers_to(environment);
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
  const std::string log = job.folder + "/log.txt";
  if (quiet) {
    ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    ::posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  } else if (output == Output::kToStandardError) {
    ::posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  }
  Started started;
  started.problem = ::posix_spawnp(&started.process, command.front().c_str(), &actions, &attributes, arguments.data(), variables.data());
  ::posix_spawn_file_actions_destroy(&actions);
  ::posix_spawnattr_destroy(&attributes);
  return started;
}

int wait_for(pid_t process) {
  int status = 0;
  while (::waitpid(process, &status, 0) < 0) {
    if (errno != EINTR) return 127;
  }
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

DryRunResult finished(pid_t process, const DryRunJob& job) {
  const auto begin = std::chrono::steady_clock::now();
  DryRunResult result;
  result.status = wait_for(process);
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  result.folder = job.folder;
  result.processes = read_summaries(job.folder);
  return result;
}

}  // namespace

bool interrupted() { return was_interrupted != 0; }

Result<DryRunResult> run_in_foreground(const PlanParts& parts, const DryRunJob& job, Output output) {
  if (Status written = write_request(job.folder, parts, job.request); !written) return written.error();
  const InterruptsNoted noted;
  const Started started = start(parts, job, false, output);
  if (started.problem != 0) {
    const std::string& program = job.command.front();
    return Error{program + (started.problem == ENOENT ? " was not found" : started.problem == EACCES ? " is not executable" : std::string(" could not be started: ") + std::strerror(started.problem)), {}, {}};
  }
  return finished(started.process, job);
}

std::vector<DryRunResult> run_quietly(const PlanParts& parts, const std::vector<DryRunJob>& jobs) {
  const InterruptsNoted noted;
  std::vector<DryRunResult> results(jobs.size());
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t at = next++; at < jobs.size() && !interrupted(); at = next++) {
      if (!write_request(jobs[at].folder, parts, jobs[at].request)) continue;
      const Started started = start(parts, jobs[at], true, Output::kAsIs);
      if (started.problem == 0) results[at] = finished(started.process, jobs[at]);
    }
  };
  std::vector<std::thread> threads;
  const std::size_t cores = std::max(1u, std::thread::hardware_concurrency());
  for (std::size_t more = 1; more < std::min(cores, jobs.size()); ++more) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  return results;
}

}  // namespace faultline::cli
