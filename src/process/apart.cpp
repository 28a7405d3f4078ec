#include "process/apart.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <exception>
#include <new>

#include "fmt/format.h"
#include "process/hint.h"
#include "process/signals.h"

namespace faultline::process {
namespace {

constexpr int kNoMemory = 100, kThrew = 101;  // beside the statuses of `work`, which are small

void be_first_to_go() {
  const int file = ::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (file < 0) return;
  (void)!::write(file, "1000", 4);
  ::close(file);
}

[[noreturn]] void be_apart(const std::function<int()>& work) {
  be_as_before();
  ignore_closed_pipes();
  be_first_to_go();
  int status = kThrew;
  try {
    status = work();
  } catch (const std::bad_alloc&) {
    status = kNoMemory;
  } catch (const std::exception& problem) {
    hint(std::string("internal error: ") + problem.what() + ". Please report this with the run's folder");
  }
  ::_exit(status);
}

}  // namespace

ApartEnd do_apart(const std::function<int()>& work) {
  pid_t process = -1;
  {
    const SignalsHeld held;
    process = ::fork();
    if (process == 0) be_apart(work);
  }
  if (process < 0) return {0, fmt::format("no process could be started for it ({})", std::strerror(errno))};
  const int status = wait_listening(process, Listening::kEndIt);
  if (status == -1) return {0, "its process was lost"};
  if (WIFSIGNALED(status))
    return {0,
            fmt::format("its process was killed by signal {} ({})", WTERMSIG(status), ::strsignal(WTERMSIG(status)))};
  if (WEXITSTATUS(status) == kNoMemory) return {0, "there was not enough memory"};
  if (WEXITSTATUS(status) == kThrew) return {0, "of an error of Faultline's own"};
  return {WEXITSTATUS(status), {}};
}

}  // namespace faultline::process
