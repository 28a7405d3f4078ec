#include "cli/private_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/descriptor.h"

namespace faultline::cli {
namespace {

namespace fs = std::filesystem;

constexpr mode_t kOwnFolder = 0700, kOwnFile = 0600;
constexpr mode_t kOthersWrite = 0022, kOthersAny = 0077;

Error not_made(const std::string& path, int problem) {
  return {"the folder " + path + " could not be made: " + std::strerror(problem), {}, "Give another with -o."};
}
Error refused(const std::string& path, const std::string& why) {
  return {"the folder " + path + " is not used: " + why, {}, "Give another with -o."};
}

// A link that is our own may lead anywhere; one of somebody else's leads nowhere.
Status check_link(const std::string& path) {
  struct stat seen{};
  if (::lstat(path.c_str(), &seen) == 0 && S_ISLNK(seen.st_mode) && seen.st_uid != ::geteuid())
    return refused(path, "it is a symbolic link that belongs to another user");
  return Ok{};
}

Status take_folder(const std::string& path) {
  if (Status link = check_link(path); !link) return link;
  const Descriptor folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.number() < 0) return not_made(path, errno == ENOTDIR ? EEXIST : errno);
  struct stat seen{};
  if (::fstat(folder.number(), &seen) != 0) return not_made(path, errno);
  if (seen.st_uid != ::geteuid()) return refused(path, "it belongs to another user");
  if ((seen.st_mode & kOthersWrite) != 0) return refused(path, "others can write to it");
  if ((seen.st_mode & kOthersAny) == 0) return Ok{};
  std::error_code problem;
  if (!fs::is_empty(path, problem) || problem)
    return refused(path, "others can read it, and it has other things in it");
  if (::fchmod(folder.number(), kOwnFolder) != 0) return not_made(path, errno);
  return Ok{};
}

std::string folder_above(const std::string& path) { return fs::path(path).lexically_normal().parent_path().string(); }

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
  std::string wanted = path;
  while (wanted.size() > 1 && wanted.back() == '/') wanted.pop_back();
  std::error_code problem;
  if (const std::string above = folder_above(wanted); !above.empty()) fs::create_directories(above, problem);
  Result<bool> made = make_new_private_folder(wanted);
  if (!made) return made.error();
  if (*made) return Ok{};
  return take_folder(wanted);
}

Status write_text(const std::string& path, const std::string& text) {
  const auto failed = [&](int problem) {
    return Error{(problem == ENOSPC || problem == EDQUOT ? "the disk is full: " : "") + path +
                     " could not be written: " + std::strerror(problem),
                 {},
                 {}};
  };
  const std::string part = path + ".part";
  ::unlink(part.c_str());
  const Descriptor file(::open(part.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kOwnFile));
  if (file.number() < 0) return failed(errno);
  ::fchmod(file.number(), kOwnFile);
  int problem = 0;
  for (std::size_t done = 0; problem == 0 && done < text.size();) {
    const ssize_t wrote = ::write(file.number(), text.data() + done, text.size() - done);
    if (wrote > 0)
      done += static_cast<std::size_t>(wrote);
    else if (errno != EINTR)
      problem = errno;
  }
  if (problem == 0 && ::rename(part.c_str(), path.c_str()) != 0) problem = errno;
  if (problem == 0) return Ok{};
  ::unlink(part.c_str());
  return failed(problem);
}

}  // namespace faultline::cli
