// A program whose changes to files are kept aside: it sees them, the machine does not, and they are gone when it has ended.
//
// It works by the kernel's own means for watching a process (ptrace, with a seccomp filter so that only calls with paths stop), because that
// holds for every way of writing: Python, C, a statically linked child, a shell. It needs no privilege, no namespace and no mount, so it works in
// containers too; where a system forbids ptrace, may_confine() says so and nothing is run.
//
// The thread that starts a program watches it: start and wait are to be called by the same one. Several threads may each watch one.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "confine/file_layer.h"

namespace faultline::confine {

// Whether this machine lets a program be confined; the Error says what forbids it. Tried on a child that does nothing.
Status may_confine();

// Whether the word leads to a program, as a shell would look for it.
Status find_program(const std::string& word);

// Why a word that could not be started is no program, and what to write instead: a Python file, a notebook.
Error not_program(const std::string& word);

struct Program {
  std::vector<std::string> command;
  std::vector<std::string> environment;  // NAME=value
  std::string aside;                     // a new folder for what it writes: made and removed by us
  std::string own_folder;                // Faultline's folder of this run, written for real
  int input = 0, output = 1, error = 2;  // descriptors
  bool offline = false;
  void (*in_child)() = nullptr;  // called in the child before the program begins; async-signal-safe
  std::string keep_input;        // a file to keep what the program reads from its standard input in; empty: not kept
};

struct Effects {  // what a confined program would have done to the machine
  std::vector<Change> changes;
  bool ran_out_of_space = false;
  bool input_was_cut = false;  // not all that it read could be kept
  std::uint64_t connections = 0;
  std::map<std::string, std::uint64_t> machines;
  bool offline = false;
  // files that were changed all the same: open before it began, or the kernel's own
  std::vector<std::string> done_for_real;
  // signals to processes that are not the program's: not sent
  std::uint64_t unsent_signals = 0;
  std::map<std::string, std::uint64_t> unsent_to;
};

class ConfinedProgram {
 public:
  static Result<std::unique_ptr<ConfinedProgram>> start(Program program);
  ~ConfinedProgram();
  pid_t process() const;
  // Until it has ended, and its children with it: those that stay behind are given a moment, then ended. The status as waitpid gives it.
  int wait();
  Effects effects() const;

 private:
  struct State;
  explicit ConfinedProgram(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace faultline::confine
