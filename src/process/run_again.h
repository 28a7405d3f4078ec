// run --again: after a GPU fault the program is run a second time, for real, with the GPU core dump armed. What it prints goes to a log; the first run's
// output and status are the ones that count.
//
//   FOLDER/again/log.txt          what the second run printed
//   FOLDER/again/core-PID …       its dump and its record, as in any run's folder
#pragma once

#include <string>

#include "process/given_input.h"
#include "process/run_setup.h"

namespace faultline::process {

void run_again(const RunArguments& arguments, const std::string& folder, const GivenInput& input);

}  // namespace faultline::process
