// The witness: a process beside Faultline, in the same process group, that tells which signals were sent to the group. See signals.h.
#pragma once

#include <sys/types.h>

#include <array>
#include <csignal>
#include <cstdint>
#include <memory>

namespace faultline::process {

std::int64_t now_ns();           // of a clock that both processes read; async-signal-safe
bool is_stopped(pid_t process);  // by a signal or a debugger

class Witness {
 public:
  static std::unique_ptr<Witness> begin();  // null where there is no process to be had
  ~Witness();
  Witness(const Witness&) = delete;
  Witness& operator=(const Witness&) = delete;

  pid_t process() const { return process_; }
  // This signal, which reached us at that time (of now_ns()), reached the witness as well, or may have: a stop takes back a SIGCONT that waits. Waits a
  // moment for it.
  bool saw(int signal, std::int64_t when_ns);
  // Wake this process, should it stop, when that one goes on; 0: no more.
  void watch(pid_t process) const;

 private:
  Witness(pid_t process, int from) : process_(process), from_(from) {}

  void hear();

  pid_t process_;
  int from_;
  struct Seen {
    int times = 0;
    std::int64_t last_ns = 0;
  };
  std::array<Seen, NSIG> seen_{};
  std::int64_t last_stop_ns_ = 0;
};

}  // namespace faultline::process
