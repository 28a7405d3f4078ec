#include <cstdio>
#include <cstdlib>

#include "base/result.h"

namespace faultline {

void check_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "faultline: internal error: %s does not hold (%s:%d). Please report this with the input file.\n", condition, file, line);
  std::fflush(nullptr);
  std::_Exit(3);
}

}  // namespace faultline
