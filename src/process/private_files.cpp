#include "process/private_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/descriptor.h"
#include "base/whole_file.h"

namespace faultline::process {
namespace {

namespace fs = std::filesystem;

constexpr mode_t kOwnFolder = 0700, kOwnFile = 0600;

Error not_made(const std::string& path, int problem) {
  return {"the folder " + path + " could not be made: " + std::strerror(problem), {}, "Give another with -o."};
}

int write_all(int file, const std::string& text) {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t wrote = ::write(file, text.data() + done, text.size() - done);
    if (wrote < 0 && errno != EINTR) return errno;
    if (wrote > 0) done += static_cast<std::size_t>(wrote);
  }
  return 0;
}

Status write_whole(const std::string& path, const std::string& text, bool replaces) {
  const std::string part = name_beside(path);
  int problem = 0;
  {
    const Descriptor file(::open(part.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kOwnFile));
    problem = file ? 0 : errno;
    if (file) {
      ::fchmod(file.number(), kOwnFile);
      problem = write_all(file.number(), text);
      if (problem != 0) ::unlink(part.c_str());
    }
  }
  if (problem == 0) problem = put_in_place(part, path, replaces);
  if (problem == 0) return Ok{};
  if (problem == EEXIST) return Error{path + " has come to be there meanwhile, and stays as it is", {}, {}};
  return Error{(problem == ENOSPC || problem == EDQUOT ? "the disk is full: " : "") + path +
                   " could not be written: " + std::strerror(problem),
               {},
               {}};
}

}  // namespace

Result<bool> make_new_private_folder(const std::string& path) {
  if (::mkdir(path.c_str(), kOwnFolder) != 0) {
    if (errno == EEXIST) return false;
    return not_made(path, errno);
  }
  ::chmod(path.c_str(), kOwnFolder);  // a umask may have taken our own rights; some file systems know no modes
  return true;
}

Status make_private_folder(const std::string& path) {
  std::error_code problem;
  fs::create_directories(fs::path(path).parent_path(), problem);
  Result<bool> made = make_new_private_folder(path);
  if (!made) return made.error();
  if (!*made && !fs::is_directory(fs::symlink_status(path, problem))) return not_made(path, EEXIST);
  return Ok{};
}

Status write_text(const std::string& path, const std::string& text) { return write_whole(path, text, true); }

Status write_named_file(const std::string& path, const std::string& text, bool replaces) {
  const Result<std::string> target = replaceable(path);
  if (!target) return Error{path + ": " + target.error().what, {}, {}};
  return write_whole(*target, text, replaces);
}

}  // namespace faultline::process
