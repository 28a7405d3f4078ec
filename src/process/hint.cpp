#include "process/hint.h"

#include <cstdio>

#include "base/safe_text.h"
#include "process/progress.h"

namespace faultline::process {

void hint(const std::string& sentence) {
  Progress::make_way();
  std::string line = "faultline: " + sentence;
  if (line.back() != '.') line += '.';
  // One line whatever it quotes: paths and inputs may hold line ends and terminal codes.
  std::fprintf(stderr, "%s\n", shown(line).c_str());
}

}  // namespace faultline::process
