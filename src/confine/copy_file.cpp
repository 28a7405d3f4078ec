#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "base/descriptor.h"
#include "confine/file_layer.h"

namespace faultline::confine {
namespace {

constexpr std::uint64_t kLeftFree = 512ull << 20;  // of the disk, for everybody else
constexpr std::size_t kPiece = 1 << 20;

int copy_piece(int from, int to, off_t begin, off_t end) {
  std::vector<char> buffer(kPiece);
  while (begin < end) {
    const ssize_t got = ::pread(from, buffer.data(),
                                std::min<std::size_t>(buffer.size(), static_cast<std::size_t>(end - begin)), begin);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno;
    if (got == 0) return 0;  // it became shorter meanwhile
    for (ssize_t done = 0; done < got;) {
      const ssize_t put = ::pwrite(to, buffer.data() + done, static_cast<std::size_t>(got - done), begin + done);
      if (put < 0 && errno != EINTR) return errno;
      if (put > 0) done += put;
    }
    begin += got;
  }
  return 0;
}

int copy_content(int from, int to, const struct stat& status) {
  if (::ioctl(to, FICLONE, from) == 0) return 0;
  struct statvfs disk {};
  const std::uint64_t needed = static_cast<std::uint64_t>(status.st_blocks) * 512;
  if (::fstatvfs(to, &disk) == 0 && needed + kLeftFree > static_cast<std::uint64_t>(disk.f_bavail) * disk.f_frsize)
    return ENOSPC;
  if (::ftruncate(to, status.st_size) != 0) return errno;
  for (off_t at = 0; at < status.st_size;) {
    off_t begin = ::lseek(from, at, SEEK_DATA);
    if (begin < 0 && errno == ENXIO) return 0;  // a hole to the end
    off_t end = begin < 0 ? -1 : ::lseek(from, begin, SEEK_HOLE);
    if (begin < 0) begin = at;
    if (end < 0) end = status.st_size;
    if (const int problem = copy_piece(from, to, begin, end)) return problem;
    at = end;
  }
  return 0;
}

}  // namespace

int copy_plain_file(const std::string& from, const std::string& to, bool content) {
  const Descriptor source(::open(from.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!source) return errno;
  struct stat status {};
  if (::fstat(source.number(), &status) != 0) return errno;
  const Descriptor target(::open(to.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!target) return errno;
  int problem = content ? copy_content(source.number(), target.number(), status) : 0;
  // EINVAL: an owner that this user namespace has no number for.
  if (problem == 0 && ::fchown(target.number(), status.st_uid, status.st_gid) != 0 && errno != EPERM && errno != EINVAL)
    problem = errno;
  if (problem != 0) {
    ::unlink(to.c_str());
    return problem;
  }
  ::fchmod(target.number(), (status.st_mode & 07777) | S_IRUSR);
  const timespec times[2] = {status.st_atim, status.st_mtim};
  if (content) ::futimens(target.number(), times);
  return 0;
}

}  // namespace faultline::confine
