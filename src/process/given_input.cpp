#include "process/given_input.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "sources/run_folder/layout.h"

namespace faultline::process {

GivenInput::GivenInput(const std::string& folder) {
  struct stat seen {};
  is_there_ = ::fstat(STDIN_FILENO, &seen) == 0 && !(S_ISCHR(seen.st_mode) && seen.st_rdev == makedev(1, 3));
  if (!is_there_) return;
  offset_ = S_ISREG(seen.st_mode) ? ::lseek(STDIN_FILENO, 0, SEEK_CUR) : -1;
  is_file_ = offset_ >= 0;
  const bool flows = S_ISFIFO(seen.st_mode) || S_ISSOCK(seen.st_mode) || ::isatty(STDIN_FILENO) != 0;
  if (flows && !folder.empty()) keep_ = folder + "/" + std::string(layout::kInput);
}

int GivenInput::again() const {
  if (!is_file_) return keep_.empty() ? -1 : ::open(keep_.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  // opened anew: the place in the first one stays where it is
  const int file = ::open("/proc/self/fd/0", O_RDONLY | O_CLOEXEC);
  if (file >= 0) ::lseek(file, offset_, SEEK_SET);
  return file;
}

}  // namespace faultline::process
