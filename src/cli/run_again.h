// run --again: after a GPU fault the program is run a second time, for real, with the GPU core dump armed. What it prints goes to a log; the first run's
// output and status are the ones that count.
//
//   FOLDER/again/log.txt          what the second run printed
//   FOLDER/again/core-PID …       its dump and its record, as in any run's folder
#pragma once

#include <optional>
#include <string>

#include "cli/run_setup.h"

namespace faultline::cli {

// Standard input, remembered before the first run reads it.
class RememberedInput {
 public:
  RememberedInput();
  // A descriptor that gives the same again, to be closed by the caller; -1: nothing to read.
  int again() const;
  bool can_be_had_again() const { return kind_ != Kind::kGone; }

 private:
  enum class Kind : std::uint8_t { kNothing, kFile, kGone };
  Kind kind_ = Kind::kNothing;
  long offset_ = 0;
};

void run_again(const RunArguments& arguments, const std::string& folder, const RememberedInput& input);

}  // namespace faultline::cli
