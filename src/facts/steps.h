// Where the program's rounds begin and end.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trace/trace.h"

namespace faultline {

struct Steps {
  std::vector<std::uint32_t> ends;  // event indices of the marks that end a step
  std::string how;                  // "optimizer steps (AdamW)"; empty when the recording has no marks
};

// From the recording's own marks. Programs with several optimizers mark a step with each; the most frequent name counts, the first to
// occur among equals.
Steps find_steps(const Trace& trace);

}  // namespace faultline
