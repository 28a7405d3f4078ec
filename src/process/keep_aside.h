// keep-aside … -- CMD…: a part of `plan`, not a verb for people. Runs CMD with its changes to files kept aside, and leaves what they were in a file.
//
// It is a process of its own because watching a program takes a whole process: it stands between Faultline and the program, ends as the program
// ended, and the program dies with it. Signals that Faultline sends it are meant for the program; those that reach the whole group, the program has too.
#pragma once

#include <string>
#include <vector>

#include "process/child_process.h"

namespace faultline::process {

struct AsideArguments {
  std::vector<std::string> command;
  std::string aside, own_folder, effects, keep_input;
  bool offline = false;
};

// To the program's end, and that of all that it leaves behind. The Error is about starting it.
Result<ProgramEnd> keep_aside(const AsideArguments& arguments);

}  // namespace faultline::process
