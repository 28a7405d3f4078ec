#include "process/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>

#include "base/environment.h"

namespace faultline::process {

int terminal_width(int descriptor) {
  winsize size{};
  if (::ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col != 0) return size.ws_col;
  const int stated = std::atoi(environment("COLUMNS").c_str());
  return stated > 0 ? stated : 80;
}

bool speaks_utf8(int descriptor) {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const std::string value = environment(name);
    if (value.empty()) continue;
    return value.find("UTF-8") != std::string::npos || value.find("utf8") != std::string::npos ||
           value.find("UTF8") != std::string::npos || value.find("utf-8") != std::string::npos;
  }
  // files and pipes are UTF-8 everywhere today; a terminal without a locale may not be
  return ::isatty(descriptor) == 0;
}

}  // namespace faultline::process
