// Starting the user's program and waiting for it.
//
// In the foreground the program keeps its standard input, output and error, its working folder and its process group, so Ctrl-C reaches it; Faultline
// waits. A quiet run reads nothing and writes to a log. The environment is the user's, with changes.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace faultline::cli {

class Environment {
 public:
  Environment();  // this process's own
  void set(const std::string& name, const std::string& value);
  void set_unless_there(const std::string& name, const std::string& value);
  void prepend(const std::string& name, const std::string& value, char separator = ':');
  void append(const std::string& name, const std::string& value, char separator = ':');
  bool has(const std::string& name) const;
  std::string value(const std::string& name) const;  // empty where it is not there
  std::vector<std::string>& entries() { return entries_; }

 private:
  std::vector<std::string>::const_iterator find(const std::string& name) const;
  std::vector<std::string> entries_;  // NAME=value
};

enum class Output : std::uint8_t { kAsIs, kToStandardError };

// The Error says in words why it could not be started: not found, not executable. `log`: not empty for a quiet run.
Result<pid_t> start_program(std::vector<std::string> command, Environment environment, Output output, const std::string& log = {});

struct ProgramEnd {
  int status = 0;  // 128 + N: ended by signal N
  double seconds = 0;
};
ProgramEnd wait_for_program(pid_t process);

// While one of these lives, Ctrl-C is the program's: Faultline notes it and waits on. What else asks a process to end or to act (SIGTERM, SIGHUP, SIGUSR1,
// SIGUSR2), sent to Faultline alone, is handed on to the program that runs in the foreground.
class InterruptsNoted {
 public:
  InterruptsNoted();
  ~InterruptsNoted();
  InterruptsNoted(const InterruptsNoted&) = delete;
  InterruptsNoted& operator=(const InterruptsNoted&) = delete;
};
// The user pressed Ctrl-C, so nothing more should be started.
bool interrupted();

}  // namespace faultline::cli
