#include "base/whole_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <filesystem>

#include "fmt/format.h"

namespace faultline {
namespace {

// A file system that cannot rename without replacing can still refuse a second name.
int rename_to_new(const char* from, const char* to) {
  if (::renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0) return 0;
  if (errno != EINVAL && errno != ENOSYS) return errno;
  if (::link(from, to) == 0) return ::unlink(from), 0;
  if (errno == EEXIST || is_there(to)) return EEXIST;
  return ::rename(from, to) == 0 ? 0 : errno;
}

}  // namespace

bool is_there(const std::string& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0;
}

Result<std::string> replaceable(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code problem;
  const fs::file_type named = fs::symlink_status(path, problem).type();
  if (named == fs::file_type::none || named == fs::file_type::not_found || named == fs::file_type::regular) return path;
  if (named != fs::file_type::symlink || !fs::exists(path, problem) || !fs::is_regular_file(path, problem))
    return Error{"it is there already and is no plain file; give another name", {}, {}};
  const fs::path real = fs::canonical(path, problem);
  return problem ? Result<std::string>(Error{problem.message(), {}, {}}) : real.string();
}

std::string name_beside(const std::string& path) {
  std::string name;
  do {
    std::uint64_t number = 0;
    while (::getrandom(&number, sizeof number, 0) < 0 && errno == EINTR) {
    }
    name = fmt::format("{}.part-{:016x}", path, number);
  } while (is_there(name));
  return name;
}

int put_in_place(const std::string& written, const std::string& path, bool replaces) {
  int problem = 0;
  if (!replaces)
    problem = rename_to_new(written.c_str(), path.c_str());
  else if (::rename(written.c_str(), path.c_str()) != 0)
    problem = errno;
  if (problem != 0) ::unlink(written.c_str());
  return problem;
}

}  // namespace faultline
