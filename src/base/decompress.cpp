#include "base/decompress.h"

#include <lzma.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/units.h"

namespace faultline {
namespace {

constexpr std::size_t kInputBytes = 256 * 1024;
constexpr std::uint64_t kLzmaMemoryLimitBytes = std::uint64_t{512} << 20;

Error corrupt(const char* format, std::uint64_t offset) {
  return {std::string("the ") + format + " data is damaged", offset, "Copy or download the file again."};
}
Error cut(const char* format, std::uint64_t offset) {
  return {std::string("the ") + format + " data ends too early", offset, "The file was cut short: copy it again."};
}

// What the formats share: compressed bytes pulled from below, starting with those already read while sniffing.
class Decompressor : public ByteFiller {
 public:
  Decompressor(std::span<const std::uint8_t> head, std::unique_ptr<ByteFiller> raw)
      : raw_(std::move(raw)), input_(head.begin(), head.end()) {
    available_ = input_.size();
    input_.resize(std::max(kInputBytes, available_));
  }

 protected:
  // Ensures there is input unless the file has ended.
  Status pull() {
    if (used_ < available_ || ended_) return Ok{};
    consumed_ += used_;
    used_ = 0;
    Result<std::size_t> got = raw_->fill(input_);
    if (!got) return got.error();
    available_ = *got;
    ended_ = available_ == 0;
    return Ok{};
  }
  std::uint64_t offset() const { return consumed_ + used_; }
  // Every fill ends here: nothing may grow without end out of a few bytes.
  Result<std::size_t> unpacked(const char* format, std::size_t count) {
    unpacked_ += count;
    if (unpacked_ <= most_unpacked_bytes(offset())) return count;
    return Error{std::string("the ") + format + " data unpacks to more than " +
                     format_bytes(most_unpacked_bytes(offset())) + ", over 512 times its size,",
                 offset(), "No recording or log is like that; to read it all the same, unpack it first."};
  }

  std::unique_ptr<ByteFiller> raw_;
  std::vector<std::uint8_t> input_;
  std::size_t used_ = 0;
  std::size_t available_ = 0;
  std::uint64_t consumed_ = 0;
  std::uint64_t unpacked_ = 0;
  bool ended_ = false;
};

class Gunzip final : public Decompressor {
 public:
  using Decompressor::Decompressor;
  ~Gunzip() override {
    if (ready_) inflateEnd(&stream_);
  }
  Result<std::size_t> fill(std::span<std::uint8_t> buffer) override {
    if (!ready_) {
      if (inflateInit2(&stream_, 15 + 16) != Z_OK) return Error{"out of memory in the gzip reader", {}, {}};
      ready_ = true;
    }
    stream_.next_out = buffer.data();
    stream_.avail_out = static_cast<uInt>(buffer.size());
    while (stream_.avail_out == buffer.size()) {
      if (Status pulled = pull(); !pulled) return pulled.error();
      if (used_ == available_) {
        if (member_open_) return cut("gzip", offset());
        break;
      }
      if (!member_open_) {  // gzip files may be several members in a row
        inflateReset(&stream_);
        member_open_ = true;
      }
      stream_.next_in = input_.data() + used_;
      stream_.avail_in = static_cast<uInt>(available_ - used_);
      const int code = inflate(&stream_, Z_NO_FLUSH);
      used_ = available_ - stream_.avail_in;
      if (code == Z_STREAM_END) {
        member_open_ = false;
      } else if (code != Z_OK && code != Z_BUF_ERROR) {
        return corrupt("gzip", offset());
      }
    }
    return unpacked("gzip", buffer.size() - stream_.avail_out);
  }

 private:
  z_stream stream_{};
  bool ready_ = false;
  bool member_open_ = true;
};

class Unxz final : public Decompressor {
 public:
  using Decompressor::Decompressor;
  ~Unxz() override { lzma_end(&stream_); }
  Result<std::size_t> fill(std::span<std::uint8_t> buffer) override {
    if (!ready_) {
      if (lzma_stream_decoder(&stream_, kLzmaMemoryLimitBytes, LZMA_CONCATENATED) != LZMA_OK)
        return Error{"out of memory in the xz reader", {}, {}};
      ready_ = true;
    }
    stream_.next_out = buffer.data();
    stream_.avail_out = buffer.size();
    while (!finished_ && stream_.avail_out == buffer.size()) {
      if (Status pulled = pull(); !pulled) return pulled.error();
      stream_.next_in = input_.data() + used_;
      stream_.avail_in = available_ - used_;
      const lzma_ret code = lzma_code(&stream_, ended_ ? LZMA_FINISH : LZMA_RUN);
      used_ = available_ - stream_.avail_in;
      if (code == LZMA_STREAM_END) {
        finished_ = true;
      } else if (code == LZMA_MEMLIMIT_ERROR) {
        return Error{"the xz data needs more than 512 MiB to unpack", {}, "Unpack it with `xz -d` first."};
      } else if (code == LZMA_BUF_ERROR) {
        return cut("xz", offset());
      } else if (code != LZMA_OK) {
        return corrupt("xz", offset());
      }
    }
    return unpacked("xz", buffer.size() - stream_.avail_out);
  }

 private:
  lzma_stream stream_ = LZMA_STREAM_INIT;
  bool ready_ = false;
  bool finished_ = false;
};

class Unzstd final : public Decompressor {
 public:
  Unzstd(std::span<const std::uint8_t> head, std::unique_ptr<ByteFiller> raw)
      : Decompressor(head, std::move(raw)), context_(ZSTD_createDCtx()) {}
  ~Unzstd() override { ZSTD_freeDCtx(context_); }
  Result<std::size_t> fill(std::span<std::uint8_t> buffer) override {
    ZSTD_outBuffer out{buffer.data(), buffer.size(), 0};
    while (out.pos == 0) {
      if (Status pulled = pull(); !pulled) return pulled.error();
      if (used_ == available_) {
        if (frame_open_) return cut("zstd", offset());
        break;
      }
      ZSTD_inBuffer in{input_.data(), available_, used_};
      const std::size_t code = ZSTD_decompressStream(context_, &out, &in);
      used_ = in.pos;
      if (ZSTD_isError(code)) return corrupt("zstd", offset());
      frame_open_ = code != 0;
    }
    return unpacked("zstd", out.pos);
  }

 private:
  ZSTD_DCtx* context_;
  bool frame_open_ = true;
};

template <std::size_t n>
bool starts_with(std::span<const std::uint8_t> head, const std::array<std::uint8_t, n>& magic) {
  return head.size() >= n && std::equal(magic.begin(), magic.end(), head.begin());
}

}  // namespace

std::unique_ptr<ByteFiller> make_decompressor(std::span<const std::uint8_t> head, std::unique_ptr<ByteFiller>& raw,
                                              const char** name) {
  if (starts_with(head, std::array<std::uint8_t, 3>{0x1f, 0x8b, 0x08})) {
    *name = "gzip";
    return std::make_unique<Gunzip>(head, std::move(raw));
  }
  if (starts_with(head, std::array<std::uint8_t, 6>{0xfd, '7', 'z', 'X', 'Z', 0})) {
    *name = "xz";
    return std::make_unique<Unxz>(head, std::move(raw));
  }
  if (starts_with(head, std::array<std::uint8_t, 4>{0x28, 0xb5, 0x2f, 0xfd})) {
    *name = "zstd";
    return std::make_unique<Unzstd>(head, std::move(raw));
  }
  return nullptr;
}

}  // namespace faultline
