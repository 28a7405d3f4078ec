#include "base/mapped_file.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/plain_file.h"

namespace faultline {

MappedFile::MappedFile(const std::string& path) {
  const Result<int> opened = open_plain_file(path);
  if (!opened) return;
  const int fd = *opened;
  struct stat status {};
  if (::fstat(fd, &status) == 0 && status.st_size > 0) {
    const auto size = static_cast<std::size_t>(status.st_size);
    changed_ns_ = status.st_mtim.tv_sec * std::int64_t{1'000'000'000} + status.st_mtim.tv_nsec;
    void* const mapped = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (mapped != MAP_FAILED) bytes_ = {static_cast<const std::uint8_t*>(mapped), size};
  }
  ::close(fd);
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::uint8_t*>(bytes_.data()), bytes_.size());
}

}  // namespace faultline
