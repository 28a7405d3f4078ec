// Starting the user's program and waiting for it.
//
// In the foreground the program keeps its standard input, output and error, its working folder, its process group and its signal dispositions; Faultline
// waits, hands on what is sent to it (signals.h), and stops when the program stops. A quiet run reads nothing and writes to a log. The environment is the
// user's, with changes.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "process/ending.h"
#include "process/signals.h"

namespace faultline::process {

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

struct Placement {
  Output output = Output::kAsIs;
  std::string log;            // not empty: standard output and error go to this file
  int input = -1;             // with a log: the descriptor to read from; -1: nothing to read
  bool in_foreground = true;  // what is sent to Faultline is the program's; one at a time
  // where to say what a shell ends with when the program cannot be started: 127 not found, 126 not executable
  int* status = nullptr;
};

// The Error says in words why it could not be started: not found, not executable. `log`: not empty for a quiet run.
Result<pid_t> start_program(std::vector<std::string> command, Environment environment, const Placement& placement);
Result<pid_t> start_program(std::vector<std::string> command, Environment environment, Output output,
                            const std::string& log = {}, int* status = nullptr);

struct ProgramEnd {
  int status = 0;  // 128 + N: ended by signal N
  double seconds = 0;
  int signal = 0;            // N; 0: it ended by itself
  bool out_of_time = false;  // it was ended because it had not by then
};
ProgramEnd wait_for_program(pid_t process);  // as long as it takes
ProgramEnd wait_for_program(pid_t process, Patience patience);
ProgramEnd program_end(int status, double seconds);  // of a status as waitpid gives it; -1: it was lost

// Ends this process as the program ended: by the same signal, without a core file of its own. Returns the status for where that did not happen.
int end_like(const ProgramEnd& program);

}  // namespace faultline::process
