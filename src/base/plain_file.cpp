#include "base/plain_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "base/units.h"

namespace faultline {
namespace {

constexpr std::uint64_t kLeastHollowBytes = 64 * kMiB;
constexpr std::uint64_t kMostHoles = 64;

Error not_plain() { return {"is not a plain file", {}, "A pipe, a device or a folder is not read here."}; }

}  // namespace

Error file_error(const char* what, int code) {
  if (code == ENOENT) return {"there is no such file", {}, "Check the path."};
  if (code == EACCES) return {"permission denied", {}, "Check the file's owner and mode (ls -l)."};
  if (code == ELOOP) return {"is a link that leads back to itself", {}, {}};
  return {std::string(what) + ": " + std::strerror(code), {}, {}};
}

Result<int> open_plain_file(const std::string& path) {
  // Looked at before it is opened, as opening a device may already do something, and again afterwards, as it may have been replaced.
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return file_error("cannot be opened", errno);
  if (!S_ISREG(status.st_mode)) return not_plain();
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (file < 0) return file_error("cannot be opened", errno);
  std::optional<Error> problem;
  if (::fstat(file, &status) != 0)
    problem = file_error("cannot be examined", errno);
  else if (!S_ISREG(status.st_mode))
    problem = not_plain();
  else
    problem = hollow_file(file, status);
  if (!problem) return file;
  ::close(file);
  return *problem;
}

Result<std::string> read_plain_file(const std::string& path, std::size_t limit) {
  const Result<int> file = open_plain_file(path);
  if (!file) return file.error();
  std::string content;
  std::optional<Error> problem;
  while (!problem) {
    const std::size_t had = content.size();
    constexpr std::size_t kStepBytes = 64 * 1024;
    content.resize(had + kStepBytes);
    const ssize_t got = ::read(*file, content.data() + had, kStepBytes);
    content.resize(had + (got > 0 ? static_cast<std::size_t>(got) : 0));
    if (got == 0) break;
    if (got < 0 && errno != EINTR) problem = Error{std::string("reading failed: ") + std::strerror(errno), {}, {}};
    if (content.size() > limit) problem = Error{"holds more than " + format_bytes(limit), {}, {}};
  }
  ::close(*file);
  if (problem) return *problem;
  return content;
}

std::optional<Error> hollow_file(int file, const struct stat& status) {
  const auto size = static_cast<std::uint64_t>(status.st_size);
  const std::uint64_t held = static_cast<std::uint64_t>(status.st_blocks) * 512;
  if (size <= kLeastHollowBytes || size / kMostHoles <= held) return std::nullopt;
#ifdef SEEK_HOLE
  // A file system that compresses holds little of a file without holes.
  const off_t at = ::lseek(file, 0, SEEK_CUR);
  const off_t hole = ::lseek(file, 0, SEEK_HOLE);
  if (at >= 0) ::lseek(file, at, SEEK_SET);
  if (hole >= 0 && hole >= status.st_size) return std::nullopt;
#endif
  return Error{"is a file of holes: it claims " + format_bytes(size) + " and holds " + format_bytes(held),
               {},
               "Nothing could have written it like that; copy it again."};
}

}  // namespace faultline
