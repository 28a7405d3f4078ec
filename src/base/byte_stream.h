// ByteStream: the bytes of an input, in order, whatever they are wrapped in.
//
// A file, a pipe or a memory range, plain or compressed with gzip, xz or zstd (told from the first bytes), read through a sliding window, so
// that a reader's memory does not grow with the input. A reader keeps a pointer into the window and asks for more when it runs short:
//
//     [ consumed | at ............ end )        at   = the reader's position
//                                               end  = end of what is in memory
//
// more(at, need) keeps everything from `at` on, reads further and returns the new position; the old pointers are then invalid.
// What is unpacked stays in relation to what was packed: beyond most_unpacked_bytes() of the packed bytes read so far the stream ends with an Error.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace faultline {

// Fills a buffer with the next bytes; 0 means the end. Implemented by the plain reader and by each decompressor.
class ByteFiller {
 public:
  virtual ~ByteFiller() = default;
  virtual Result<std::size_t> fill(std::span<std::uint8_t> buffer) = 0;
};

// Recordings and logs shrink to a tenth, repetitive ones to a hundredth; what shrinks to less than a 512th holds nothing.
constexpr std::uint64_t most_unpacked_bytes(std::uint64_t packed_bytes) {
  return (std::uint64_t{64} << 20) + 512 * packed_bytes;
}

// What the user names may be anything that can be read; what a folder or another input names must be a plain file.
enum class NamedBy : std::uint8_t { kUser, kInput };

class ByteStream {
 public:
  // "-" is standard input where the user says so. The Error says what the system said.
  static Result<ByteStream> open(const std::string& path, NamedBy named_by = NamedBy::kUser);
  // the bytes must outlive the stream; decompressed like a file's
  static ByteStream from_memory(std::span<const std::uint8_t> bytes);

  const std::uint8_t* begin() const { return window_.data() + begin_; }
  const std::uint8_t* end() const { return window_.data() + end_; }
  // Position of `at` in the (decompressed) input.
  std::uint64_t offset_of(const std::uint8_t* at) const {
    return window_offset_ + static_cast<std::uint64_t>(at - window_.data());
  }

  // Makes at least `need` bytes available from `at` on if the input has them. Returns the new position of `at`; fewer bytes than
  // needed behind it means the input ended. An Error is a read or decompression failure.
  Result<const std::uint8_t*> more(const std::uint8_t* at, std::size_t need);
  // The whole rest as one string, refused above `limit` bytes.
  Result<std::string> read_all(std::size_t limit);

  std::optional<std::uint64_t> plain_size() const { return plain_size_; }  // known for an uncompressed plain file
  const char* compression() const { return compression_; }                 // "", "gzip", "xz", "zstd"

  static constexpr std::size_t kWindowBytes = 1 << 20;

 private:
  Status start(std::unique_ptr<ByteFiller> raw);

  std::unique_ptr<ByteFiller> filler_;
  std::vector<std::uint8_t> window_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::uint64_t window_offset_ = 0;  // input offset of window_[0]
  bool ended_ = false;
  std::optional<std::uint64_t> plain_size_;
  const char* compression_ = "";
};

}  // namespace faultline
