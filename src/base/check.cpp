#include "base/check.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>

#include "base/result.h"

namespace faultline {
namespace {

std::atomic<CheckHandler> handler{nullptr};

}  // namespace

void set_check_handler(CheckHandler instead) { handler.store(instead); }

void check_failed(const char* condition, const char* file, int line) {
  if (const CheckHandler instead = handler.load()) instead(condition, file, line);
  std::fprintf(stderr, "faultline: internal error: %s does not hold (%s:%d). Please report this with the input file.\n",
               condition, file, line);
  std::fflush(nullptr);
  std::_Exit(3);
}

}  // namespace faultline
