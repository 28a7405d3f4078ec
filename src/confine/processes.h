// The processes under the watch, and what they would have done to those that are not: a signal to another process is not sent, but noted.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

namespace faultline::confine {

class Processes {
 public:
  // Once for each thread.
  void add(pid_t process) { ++threads_[process]; }
  void remove(pid_t process);
  bool watches(pid_t process) const { return threads_.contains(process); }
  // All but this one that are watched: who sends a signal to everybody does not get it.
  std::vector<pid_t> others(pid_t process) const;

  void note_unsent(int signal, const std::string& whom);
  std::uint64_t unsent_count() const { return unsent_count_; }
  const std::map<std::string, std::uint64_t>& unsent() const { return unsent_; }

 private:
  std::unordered_map<pid_t, int> threads_;
  std::map<std::string, std::uint64_t> unsent_;  // "SIGTERM to 1234 (name)", the first few, and how often
  std::uint64_t unsent_count_ = 0;
};

// "1234 (name)"
std::string named_process(pid_t process);
// One that has ended, or Faultline's own: nobody is harmed.
bool is_over(pid_t process);
bool is_faultline(pid_t process);

}  // namespace faultline::confine
