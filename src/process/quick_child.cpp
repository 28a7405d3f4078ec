#include "process/quick_child.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "base/descriptor.h"
#include "base/word_list.h"
#include "fmt/format.h"

namespace faultline::process {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMostOutputBytes = 1 << 20;
constexpr int kNotStarted = 127;

int milliseconds_until(Clock::time_point end) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
  return left > 0 ? static_cast<int>(left) : 0;
}

// Until the other end is closed, there is too much, or the time is up: then false.
bool read_until(int from, Clock::time_point end, std::string& to) {
  char buffer[4096];
  for (;;) {
    pollfd ready{from, POLLIN, 0};
    const int events = ::poll(&ready, 1, milliseconds_until(end));
    if (events < 0 && errno == EINTR) continue;
    if (events <= 0) return false;
    const ssize_t size = ::read(from, buffer, sizeof buffer);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return true;
    if (to.size() < kMostOutputBytes) to.append(buffer, static_cast<std::size_t>(size));
  }
}

// False: it still runs when the time is up.
bool wait_until(pid_t child, Clock::time_point end, int& status) {
  for (;;) {
    const pid_t ended = ::waitpid(child, &status, WNOHANG);
    if (ended == child || (ended < 0 && errno != EINTR)) return true;
    if (Clock::now() >= end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

[[noreturn]] void be_child(int to, const std::function<void()>& inside) {
  ::setpgid(0, 0);
  ::signal(SIGPIPE, SIG_DFL);
  const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  if (nothing >= 0) {
    ::dup2(nothing, STDIN_FILENO);
    ::dup2(nothing, STDERR_FILENO);
  }
  ::dup2(to, STDOUT_FILENO);
  inside();
  ::_exit(0);
}

}  // namespace

ChildAnswer ask_child(const std::function<void()>& inside, std::chrono::milliseconds limit) {
  ChildAnswer answer;
  const auto not_asked = [&] {
    answer.trouble = fmt::format("could not be asked: {}", std::strerror(errno));
    return answer;
  };
  int pipe[2];
  if (::pipe2(pipe, O_CLOEXEC) != 0) return not_asked();
  const Clock::time_point end = Clock::now() + limit;
  const pid_t child = ::fork();
  if (child == 0) be_child(pipe[1], inside);
  const Descriptor from(pipe[0]);
  if (child < 0) not_asked();  // while errno says why
  ::close(pipe[1]);
  if (child < 0) return answer;
  ::setpgid(child, child);  // by whoever is first
  int status = 0;
  const bool in_time = read_until(from.number(), end, answer.output) && wait_until(child, end, status);
  if (!in_time) {
    ::kill(-child, SIGKILL);
    ::waitpid(child, &status, 0);
    answer.trouble = fmt::format("did not answer within {:g} s", static_cast<double>(limit.count()) / 1000);
    answer.status = 128 + SIGKILL;
    return answer;
  }
  if (WIFSIGNALED(status)) {
    answer.status = 128 + WTERMSIG(status);
    answer.trouble = fmt::format("ended by signal {} ({})", WTERMSIG(status), ::strsignal(WTERMSIG(status)));
  } else if (WEXITSTATUS(status) != 0) {
    answer.status = WEXITSTATUS(status);
    answer.trouble =
        answer.status == kNotStarted ? "could not be started" : fmt::format("ended with status {}", answer.status);
  }
  return answer;
}

ChildAnswer ask_program(std::vector<std::string> command, std::vector<std::string> settings,
                        std::chrono::milliseconds limit, const char* folder) {
  const std::vector<char*> arguments = pointers_to(command);
  return ask_child(
      [&] {
        for (std::string& setting : settings) ::putenv(setting.data());
        if (folder != nullptr && ::chdir(folder) != 0) ::_exit(kNotStarted);
        ::execvp(arguments.front(), arguments.data());
        ::_exit(kNotStarted);
      },
      limit);
}

}  // namespace faultline::process
