#include "process/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>

#include "base/word_list.h"
#include "confine/confined_program.h"

extern char** environ;

namespace faultline::process {
namespace {

pid_t in_foreground = 0;

// Between fork and exec, where only async-signal-safe calls are allowed. 0, or the errno of what failed.
int arrange(const Placement& placement) {
  if (!placement.log.empty()) {
    const int input = placement.input >= 0 ? placement.input : ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    const int log = ::open(placement.log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (input < 0 || log < 0 || ::dup2(input, STDIN_FILENO) < 0 || ::dup2(log, STDOUT_FILENO) < 0 ||
        ::dup2(log, STDERR_FILENO) < 0)
      return errno;
  } else if (placement.output == Output::kToStandardError) {
    if (::dup2(STDERR_FILENO, STDOUT_FILENO) < 0) return errno;
  }
  return 0;
}

// A number that a child can leave for its parent; it takes no descriptor, of which the user may have few.
class SharedNumber {
 public:
  SharedNumber() : at_(::mmap(nullptr, sizeof(int), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {}
  ~SharedNumber() {
    if (at_ != MAP_FAILED) ::munmap(at_, sizeof(int));
  }
  SharedNumber(const SharedNumber&) = delete;
  SharedNumber& operator=(const SharedNumber&) = delete;
  volatile int* get() const { return at_ == MAP_FAILED ? nullptr : static_cast<volatile int*>(at_); }

 private:
  void* at_;
};

[[noreturn]] void become(const char* program, char** arguments, char** variables, const Placement& placement,
                         volatile int* tell) {
  int problem = arrange(placement);
  if (problem == 0) {
    be_as_before();
    ::execvpe(program, arguments, variables);
    problem = errno;
  }
  *tell = problem;
  ::_exit(127);
}

// A fork that returns here when the child has become its program, or has ended. Their memory is not shared.
pid_t fork_until_begun() { return static_cast<pid_t>(::syscall(SYS_clone, CLONE_VFORK | SIGCHLD, 0, 0, 0, 0)); }

// The status, or -1 when it was lost. Until the process is forgotten its number stays its own: it has ended, but nobody has asked how.
int wait_quiet(pid_t process, Ending* ending = nullptr) {
  siginfo_t end{};
  if (const int handle = ending != nullptr ? static_cast<int>(::syscall(SYS_pidfd_open, process, 0)) : -1;
      handle >= 0) {
    for (pollfd ended{handle, POLLIN, 0}; ::poll(&ended, 1, Ending::kLookEveryMs) <= 0;) ending->look();
    ::close(handle);
  }
  while (::waitid(P_PID, static_cast<id_t>(process), &end, WEXITED | WNOWAIT) != 0 && errno == EINTR) {
  }
  QuietHeld held;
  held.end(process);
  int status = -1;
  return ::waitpid(process, &status, 0) == process ? status : -1;
}

std::string why_not(const std::string& program, int problem) {
  if (program.ends_with(".py") || program.ends_with(".ipynb")) return confine::not_program(program).what;
  if (problem == ENOENT) return program + " was not found";
  if (problem == EACCES) return program + " is not executable";
  return program + " could not be started: " + std::strerror(problem);
}

}  // namespace

Environment::Environment() {
  for (char** entry = environ; *entry != nullptr; ++entry) entries_.emplace_back(*entry);
}

std::vector<std::string>::const_iterator Environment::find(const std::string& name) const {
  return std::find_if(entries_.begin(), entries_.end(), [&](const std::string& entry) {
    return entry.starts_with(name) && entry.size() > name.size() && entry[name.size()] == '=';
  });
}

bool Environment::has(const std::string& name) const { return find(name) != entries_.end(); }

std::string Environment::value(const std::string& name) const {
  const auto at = find(name);
  return at == entries_.end() ? std::string() : at->substr(name.size() + 1);
}

void Environment::set(const std::string& name, const std::string& value) {
  const auto at = find(name);
  if (at == entries_.end())
    entries_.push_back(name + "=" + value);
  else
    entries_[static_cast<std::size_t>(at - entries_.begin())] = name + "=" + value;
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

Result<pid_t> start_program(std::vector<std::string> command, Environment environment, const Placement& placement) {
  std::vector<char*> arguments = pointers_to(command), variables = pointers_to(environment.entries());
  const SharedNumber told;  // stays 0 by a successful exec
  if (told.get() == nullptr) return Error{why_not(command.front(), ENOMEM), {}, {}};
  pid_t process = -1;
  int fork_problem = 0;
  {
    QuietHeld held;
    if (placement.in_foreground || !interrupted()) {
      process = fork_until_begun();
      if (process == 0) become(command.front().c_str(), arguments.data(), variables.data(), placement, told.get());
      fork_problem = errno;
    } else {
      fork_problem = EINTR;
    }
    if (process > 0 && !placement.in_foreground) held.begin(process);
  }
  if (process < 0) return Error{why_not(command.front(), fork_problem), {}, {}};
  if (const int problem = *told.get(); problem != 0) {
    wait_quiet(process);
    if (placement.status != nullptr) *placement.status = problem == ENOENT ? 127 : 126;
    return Error{why_not(command.front(), problem), {}, {}};
  }
  if (placement.in_foreground) in_foreground = process;
  return process;
}

Result<pid_t> start_program(std::vector<std::string> command, Environment environment, Output output,
                            const std::string& log, int* status) {
  return start_program(std::move(command), std::move(environment), Placement{output, log, -1, log.empty(), status});
}

namespace {

ProgramEnd wait_until_ended(pid_t process, Ending* ending) {
  const auto begin = std::chrono::steady_clock::now();
  int status = -1;
  if (process == in_foreground) {
    status = wait_listening(process, Listening::kHandOn, ending);
    in_foreground = 0;
  } else {
    status = wait_quiet(process, ending);
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return program_end(status, seconds);
}

}  // namespace

ProgramEnd wait_for_program(pid_t process) { return wait_until_ended(process, nullptr); }

ProgramEnd wait_for_program(pid_t process, Patience patience) {
  Ending ending(process, std::move(patience));
  ProgramEnd end = wait_until_ended(process, &ending);
  end.out_of_time = ending.out_of_time();
  return end;
}

ProgramEnd program_end(int status, double seconds) {
  if (status == -1) return {127, seconds};
  if (WIFSIGNALED(status)) return {128 + WTERMSIG(status), seconds, WTERMSIG(status)};
  return {WEXITSTATUS(status), seconds};
}

int end_like(const ProgramEnd& program) {
  if (program.signal == 0) return program.status;
  // The program's own core file, where it left one, is not overwritten.
  const rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
  ::prctl(PR_SET_DUMPABLE, 0);
  ::signal(program.signal, SIG_DFL);
  sigset_t only;
  ::sigemptyset(&only);
  ::sigaddset(&only, program.signal);
  ::pthread_sigmask(SIG_UNBLOCK, &only, nullptr);
  ::raise(program.signal);
  return program.status;
}

}  // namespace faultline::process
