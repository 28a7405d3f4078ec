#include "confine/given_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "confine/paths.h"

namespace faultline::confine {

namespace {

bool is_same_file(const struct stat& one, const struct stat& other) {
  return one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

bool is_open_as(const struct stat& file, int descriptor) {
  struct stat other {};
  return ::fstat(descriptor, &other) == 0 && is_same_file(file, other);
}

}  // namespace

GivenFiles::GivenFiles() {
  std::error_code problem;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", problem)) {
    File file{std::atoi(entry.path().filename().c_str()), read_link(entry.path().string()), {}};
    const int flags = ::fcntl(file.descriptor, F_GETFL), own = ::fcntl(file.descriptor, F_GETFD);
    const bool is_given = own >= 0 && (own & FD_CLOEXEC) == 0;
    if (!is_given || flags < 0 || (flags & O_ACCMODE) == O_RDONLY || ::fstat(file.descriptor, &file.before) != 0 ||
        !S_ISREG(file.before.st_mode))
      continue;
    file.only_appends = (flags & O_APPEND) != 0;
    // What the program prints is meant to arrive where it is sent.
    file.is_output = is_open_as(file.before, STDOUT_FILENO) || is_open_as(file.before, STDERR_FILENO);
    files_.push_back(std::move(file));
  }
}

const GivenFiles::File* GivenFiles::find(const struct stat& file) const {
  const auto found =
      std::find_if(files_.begin(), files_.end(), [&](const File& one) { return is_same_file(one.before, file); });
  return found == files_.end() ? nullptr : &*found;
}

std::vector<std::string> GivenFiles::changed() const {
  std::vector<std::string> names;
  for (const File& file : files_) {
    struct stat now {};
    const timespec& before = file.before.st_mtim;
    if (file.is_output || std::find(names.begin(), names.end(), file.name) != names.end()) continue;
    if (::fstat(file.descriptor, &now) != 0 || now.st_size != file.before.st_size ||
        now.st_mtim.tv_sec != before.tv_sec || now.st_mtim.tv_nsec != before.tv_nsec)
      names.push_back(file.name);
  }
  return names;
}

}  // namespace faultline::confine
