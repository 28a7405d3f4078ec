#include "trace/file_space.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/descriptor.h"
#include "trace/file_format.h"

namespace faultline {
namespace {

// Grow in steps that are small next to the file but save system calls: a writer that is killed leaves the rest of a step as zeros.
constexpr std::uint64_t kLeastStepBytes = 1 << 20;
constexpr std::uint64_t kMostStepBytes = 32 << 20;

Error file_error(const char* what, int error, std::string next = {}) {
  return Error{fmt::format("{}: {}", what, std::strerror(error)), {}, std::move(next)};
}

constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t step) { return (value + step - 1) / step * step; }

void raise_to(std::atomic<std::uint64_t>& value, std::uint64_t least) {
  std::uint64_t now = value.load(std::memory_order_relaxed);
  while (now < least && !value.compare_exchange_weak(now, least, std::memory_order_relaxed)) {
  }
}

int write_zeros(int file, std::uint64_t begin, std::uint64_t end) {
  static constexpr std::array<char, kTraceUnitBytes> kZeros{};
  while (begin < end) {
    const ssize_t written =
        ::pwrite(file, kZeros.data(), std::min<std::uint64_t>(kZeros.size(), end - begin), static_cast<off_t>(begin));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return written < 0 ? errno : ENOSPC;
    begin += static_cast<std::uint64_t>(written);
  }
  return 0;
}

}  // namespace

Result<std::unique_ptr<TraceFile>> TraceFile::create(const std::string& path) {
  struct stat status {};
  {
    const Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (file) ::fchmod(file.number(), 0600);  // whatever the umask
    if (!file || ::fstat(file.number(), &status) != 0) return file_error("the trace file cannot be created", errno);
  }
  std::error_code problem;
  const std::filesystem::path whole = std::filesystem::absolute(path, problem);  // the program may go to another folder
  std::unique_ptr<TraceFile> trace_file(new TraceFile(problem ? path : whole.string(), status.st_dev, status.st_ino));
  if (Status written = trace_file->write_header(); !written) {
    ::unlink(path.c_str());
    return written.error();
  }
  return trace_file;
}

int TraceFile::open_again() const {
  const int file = ::open(path_.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (file < 0) return -errno;
  struct stat status {};
  if (::fstat(file, &status) == 0 && status.st_dev == device_ && status.st_ino == inode_) return file;
  ::close(file);
  return -ESTALE;
}

Status TraceFile::write_header() {
  const TraceFileHeader header;
  if (Status status = reserve_until(kTraceUnitBytes); !status) return Error{status.error().what, {}, {}};  // none yet
  const Descriptor file(open_again());
  const ssize_t written = file ? ::pwrite(file.number(), &header, sizeof header, 0) : -1;
  if (written != static_cast<ssize_t>(sizeof header))
    return file_error("the trace file cannot be written", !file ? -file.number() : written < 0 ? errno : EIO);
  raise_to(used_bytes_, sizeof header);
  return Ok{};
}

int TraceFile::allocate_blocks(std::uint64_t begin, std::uint64_t end) {
  // Going over a file size limit raises SIGXFSZ, which would end the process whose trace this is.
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && end > limit.rlim_cur) return EFBIG;
  const Descriptor file(open_again());
  if (!file) return -file.number();
  while (has_fallocate_) {
    if (::fallocate(file.number(), 0, static_cast<off_t>(begin), static_cast<off_t>(end - begin)) == 0) return 0;
    if (errno == EOPNOTSUPP || errno == ENOSYS)
      has_fallocate_ = false;
    else if (errno != EINTR)
      return errno;
  }
  return write_zeros(file.number(), begin, end);
}

Status TraceFile::reserve_until(std::uint64_t end) {
  const std::lock_guard lock(growing_);
  const std::uint64_t reserved = reserved_bytes_.load(std::memory_order_relaxed);
  if (end <= reserved) return Ok{};
  if (failed_errno_ == 0) {
    const std::uint64_t step = has_fallocate_ ? std::clamp(reserved / 8, kLeastStepBytes, kMostStepBytes) : 0;
    std::uint64_t target = round_up(std::max(end, reserved + step), kTraceUnitBytes);
    int error = allocate_blocks(reserved, target);
    if (error != 0 && target > end) error = allocate_blocks(reserved, target = end);
    if (error == 0) {
      reserved_bytes_.store(target, std::memory_order_release);
      return Ok{};
    }
    failed_errno_ = error;
  }
  return file_error("no room for more of the trace", failed_errno_,
                    "What was recorded until then is kept and can be read.");
}

Result<MappedChunk> TraceFile::take_chunk(std::size_t room_bytes) {
  const std::size_t overhead = sizeof(TraceFileHeader) + sizeof(ChunkHeader);
  FAULTLINE_CHECK(room_bytes <= kMostChunkBytes - overhead);
  const std::uint64_t bytes = round_up(room_bytes + overhead, kTraceUnitBytes);
  const std::uint64_t unit = next_unit_.fetch_add(bytes / kTraceUnitBytes, std::memory_order_relaxed);
  const std::uint64_t offset = unit * kTraceUnitBytes;
  if (offset + bytes > reserved_bytes_.load(std::memory_order_acquire)) {
    if (Status status = reserve_until(offset + bytes); !status) return status.error();
  }
  const Descriptor file(open_again());
  void* const mapping = file ? ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file.number(),
                                      static_cast<off_t>(offset))
                             : MAP_FAILED;
  if (mapping == MAP_FAILED) {
    const int error = file ? errno : -file.number();
    const std::lock_guard lock(growing_);
    if (failed_errno_ == 0) failed_errno_ = error;
    return file_error("the trace file cannot be mapped", error);
  }
  mapped_chunks_.fetch_add(1, std::memory_order_relaxed);
  auto* const first = static_cast<std::uint8_t*>(mapping);
  return MappedChunk{first + (unit == 0 ? sizeof(TraceFileHeader) : 0), first + bytes,
                     static_cast<std::uint32_t>(bytes), offset, first};
}

void TraceFile::release(const MappedChunk& chunk, const std::uint8_t* used) {
  raise_to(used_bytes_, chunk.place + static_cast<std::uint64_t>(used - chunk.mapping));
  ::munmap(chunk.mapping, chunk.chunk_bytes);
  mapped_chunks_.fetch_sub(1, std::memory_order_relaxed);
}

Status TraceFile::close() {
  FAULTLINE_CHECK(mapped_chunks_.load() == 0);
  const Descriptor file(open_again());
  if (!file) return file_error("the trace file cannot be found again", -file.number());
  if (::ftruncate(file.number(), static_cast<off_t>(used_bytes_.load())) != 0)
    return file_error("the trace file cannot be trimmed", errno);
  return Ok{};
}

}  // namespace faultline
