#include "base/byte_stream.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "base/decompress.h"
#include "base/plain_file.h"

namespace faultline {
namespace {

class FileFiller final : public ByteFiller {
 public:
  FileFiller(int fd, bool owned) : fd_(fd), owned_(owned) {}
  ~FileFiller() override {
    if (owned_) ::close(fd_);
  }
  Result<std::size_t> fill(std::span<std::uint8_t> buffer) override {
    while (true) {
      const ssize_t got = ::read(fd_, buffer.data(), buffer.size());
      if (got >= 0) return static_cast<std::size_t>(got);
      if (errno != EINTR) return Error{std::string("reading failed: ") + std::strerror(errno), {}, {}};
    }
  }

 private:
  int fd_;
  bool owned_;
};

class MemoryFiller final : public ByteFiller {
 public:
  explicit MemoryFiller(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}
  Result<std::size_t> fill(std::span<std::uint8_t> buffer) override {
    const std::size_t count = std::min(buffer.size(), bytes_.size());
    if (count != 0) std::memcpy(buffer.data(), bytes_.data(), count);
    bytes_ = bytes_.subspan(count);
    return count;
  }

 private:
  std::span<const std::uint8_t> bytes_;
};

Error too_large(std::size_t limit) { return {"holds more than " + std::to_string(limit >> 20) + " MiB", {}, {}}; }

}  // namespace

Result<ByteStream> ByteStream::open(const std::string& path, NamedBy named_by) {
  ByteStream stream;
  const bool is_standard_input = path == "-" && named_by == NamedBy::kUser;
  int fd = STDIN_FILENO;
  if (named_by == NamedBy::kInput) {
    const Result<int> opened = open_plain_file(path);
    if (!opened) return opened.error();
    fd = *opened;
  } else if (!is_standard_input) {
    fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return file_error("cannot be opened", errno);
  }
  auto raw = std::make_unique<FileFiller>(fd, !is_standard_input);
  struct stat status {};
  if (::fstat(fd, &status) != 0) return file_error("cannot be examined", errno);
  if (S_ISDIR(status.st_mode)) return Error{"is a directory", {}, "Name a file in it."};
  if (S_ISREG(status.st_mode)) {
    if (std::optional<Error> hollow = hollow_file(fd, status)) return *hollow;
    stream.plain_size_ = static_cast<std::uint64_t>(status.st_size);
  }
#ifdef POSIX_FADV_SEQUENTIAL
  ::posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
#endif
  if (Status started = stream.start(std::move(raw)); !started) return started.error();
  return stream;
}

ByteStream ByteStream::from_memory(std::span<const std::uint8_t> bytes) {
  ByteStream stream;
  stream.plain_size_ = bytes.size();
  (void)stream.start(std::make_unique<MemoryFiller>(bytes)).ok();  // a memory filler never fails
  return stream;
}

Status ByteStream::start(std::unique_ptr<ByteFiller> raw) {
  window_.resize(kWindowBytes);
  while (end_ < 6) {
    Result<std::size_t> got = raw->fill(std::span(window_).subspan(end_));
    if (!got) return got.error();
    if (*got == 0) break;
    end_ += *got;
  }
  const std::span<const std::uint8_t> head(window_.data(), end_);
  if (std::unique_ptr<ByteFiller> unpacked = make_decompressor(head, raw, &compression_)) {
    filler_ = std::move(unpacked);
    end_ = 0;
    plain_size_.reset();
  } else {
    filler_ = std::move(raw);
  }
  return Ok{};
}

Result<const std::uint8_t*> ByteStream::more(const std::uint8_t* at, std::size_t need) {
  const auto keep_from = static_cast<std::size_t>(at - window_.data());
  const std::size_t kept = end_ - keep_from;
  if (kept >= need || ended_) return at;
  std::memmove(window_.data(), at, kept);
  window_offset_ += keep_from;
  begin_ = 0;
  end_ = kept;
  while (end_ < need && !ended_) {
    // Grow with what really arrives, so that a length field alone cannot make us allocate.
    if (end_ == window_.size()) window_.resize(window_.size() * 2);
    Result<std::size_t> got = filler_->fill(std::span(window_).subspan(end_));
    if (!got) return got.error();
    ended_ = *got == 0;
    end_ += *got;
  }
  return window_.data();
}

namespace {

// Room for all that may come, once: pages that stay empty cost nothing, and a string that doubles holds itself twice while it does.
void make_room(std::string& text, std::size_t limit) {
  constexpr std::size_t kLarge = std::size_t{16} << 20;
  if (text.size() < kLarge || text.capacity() > limit) return;
  try {
    text.reserve(limit + ByteStream::kWindowBytes + 1);
  } catch (const std::bad_alloc&) {  // a limit on the address space: it doubles after all
  }
}

}  // namespace

Result<std::string> ByteStream::read_all(std::size_t limit) {
  std::string text;
  if (plain_size_) {
    if (*plain_size_ > limit) return too_large(limit);
    text.reserve(static_cast<std::size_t>(*plain_size_));
  }
  const std::uint8_t* at = begin();
  while (true) {
    if (!plain_size_) make_room(text, limit);
    text.append(reinterpret_cast<const char*>(at), static_cast<std::size_t>(end() - at));
    if (text.size() > limit) return too_large(limit);
    Result<const std::uint8_t*> next = more(end(), 1);
    if (!next) return next.error();
    at = *next;
    if (at == end()) return text;
  }
}

}  // namespace faultline
