// Processes of a running program that use the CUDA driver without the recorder: one that was started with a cleared environment, in a container, or statically linked.
//
// Looked for in /proc a few times a second, from a thread of its own that touches nothing else; one that comes and goes in between is not seen.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <map>
#include <string>
#include <thread>

namespace faultline::process {

class UnrecordedWatch {
 public:
  UnrecordedWatch(pid_t program, const std::string& recorder);  // the recorder's path, as it is mapped
  ~UnrecordedWatch();
  // Ends the watch. Which processes, by number: what they are called.
  std::map<std::string, std::string> finish();

 private:
  void watch();
  void look(pid_t process, int depth);

  pid_t program_;
  std::string recorder_;
  std::atomic<bool> is_over_ = false;
  std::map<pid_t, std::string> found_;     // the thread's until it has ended
  std::map<pid_t, std::string> recorded_;  // likewise: what ran there when the recorder was seen
  std::thread thread_;
};

}  // namespace faultline::process
