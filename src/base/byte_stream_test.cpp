#include "base/byte_stream.h"

#include <gtest/gtest.h>
#include <lzma.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>

namespace faultline {
namespace {

using ByteVector = std::vector<std::uint8_t>;

// Text-like, so that it shrinks, but different everywhere, so that a wrong offset shows.
ByteVector sample(std::size_t size) {
  ByteVector bytes;
  for (std::uint32_t number = 0; bytes.size() < size; ++number) {
    const std::string line = "line " + std::to_string(number * 2654435761u) + "\n";
    bytes.insert(bytes.end(), line.begin(), line.end());
  }
  bytes.resize(size);
  return bytes;
}

ByteVector noise(std::size_t size) {
  std::mt19937 random(7);
  ByteVector bytes(size);
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
  bytes[0] = 'n';  // no compression's signature
  return bytes;
}

ByteVector gzip(const ByteVector& plain) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  ByteVector packed(deflateBound(&stream, plain.size()) + 32);
  stream.next_in = const_cast<Bytef*>(plain.data());
  stream.avail_in = static_cast<uInt>(plain.size());
  stream.next_out = packed.data();
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

ByteVector xz(const ByteVector& plain) {
  ByteVector packed(lzma_stream_buffer_bound(plain.size()));
  std::size_t used = 0;
  EXPECT_EQ(lzma_easy_buffer_encode(1, LZMA_CHECK_CRC32, nullptr, plain.data(), plain.size(), packed.data(), &used,
                                    packed.size()),
            LZMA_OK);
  packed.resize(used);
  return packed;
}

ByteVector zstd(const ByteVector& plain, bool checksum = false) {
  ZSTD_CCtx* context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, checksum);
  ByteVector packed(ZSTD_compressBound(plain.size()));
  const std::size_t used = ZSTD_compress2(context, packed.data(), packed.size(), plain.data(), plain.size());
  EXPECT_FALSE(ZSTD_isError(used));
  packed.resize(used);
  ZSTD_freeCCtx(context);
  return packed;
}

ByteVector zstd_with_checksum(const ByteVector& plain) { return zstd(plain, true); }
ByteVector zstd_without_checksum(const ByteVector& plain) { return zstd(plain, false); }

struct Packing {
  const char* label;
  const char* name;  // what ByteStream calls it
  ByteVector (*pack)(const ByteVector&);
};

class PackedStream : public testing::TestWithParam<Packing> {};

Result<std::string> read_whole(const ByteVector& bytes, std::size_t limit = std::size_t{1} << 30) {
  ByteStream stream = ByteStream::from_memory(bytes);
  return stream.read_all(limit);
}

std::string as_text(const ByteVector& bytes) { return {bytes.begin(), bytes.end()}; }

TEST_P(PackedStream, GivesBackWhatWasPackedAtEverySize) {
  constexpr std::size_t kWindow = ByteStream::kWindowBytes;
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{1000}, kWindow - 1, kWindow, kWindow + 1,
                                 kWindow + 1000, 3 * kWindow + 77}) {
    const ByteVector plain = sample(size);
    const ByteVector packed = GetParam().pack(plain);
    ByteStream stream = ByteStream::from_memory(packed);
    EXPECT_STREQ(stream.compression(), GetParam().name);
    EXPECT_FALSE(stream.plain_size().has_value());
    const Result<std::string> text = stream.read_all(std::size_t{1} << 30);
    ASSERT_TRUE(text.ok()) << size << ": " << text.error().message();
    EXPECT_TRUE(*text == as_text(plain)) << size;
  }
}

TEST_P(PackedStream, GivesBackNoiseThatDoesNotShrink) {
  const ByteVector plain = noise(1'500'000);
  const Result<std::string> text = read_whole(GetParam().pack(plain));
  ASSERT_TRUE(text.ok()) << text.error().message();
  EXPECT_TRUE(*text == as_text(plain));
}

// Small steps that never fall together with the window's or the compressor's own blocks.
TEST_P(PackedStream, KeepsPositionsWhileTheWindowMoves) {
  const ByteVector plain = sample(3'333'333);
  const ByteVector packed = GetParam().pack(plain);
  ByteStream stream = ByteStream::from_memory(packed);
  const std::uint8_t* at = stream.begin();
  std::uint64_t offset = 0;
  constexpr std::size_t kStep = 4099, kNeed = 9001;
  while (true) {
    Result<const std::uint8_t*> moved = stream.more(at, kNeed);
    ASSERT_TRUE(moved.ok()) << moved.error().message();
    at = *moved;
    ASSERT_EQ(stream.offset_of(at), offset);
    const auto have = static_cast<std::size_t>(stream.end() - at);
    ASSERT_TRUE(have >= kNeed || offset + have == plain.size());
    const std::size_t step = std::min(kStep, have);
    ASSERT_EQ(std::memcmp(at, plain.data() + offset, std::min(have, kNeed)), 0) << "at " << offset;
    if (step == 0) break;
    at += step;
    offset += step;
  }
  EXPECT_EQ(offset, plain.size());
}

TEST_P(PackedStream, AreReadOneAfterTheOther) {
  const ByteVector first = sample(150'000), second = noise(70'000);
  ByteVector packed = GetParam().pack(first);
  const ByteVector more = GetParam().pack(second);
  packed.insert(packed.end(), more.begin(), more.end());
  const Result<std::string> text = read_whole(packed);
  ASSERT_TRUE(text.ok()) << text.error().message();
  EXPECT_TRUE(*text == as_text(first) + as_text(second));
}

TEST_P(PackedStream, IsRefusedWhereverItIsCut) {
  const ByteVector packed = GetParam().pack(sample(40'000));
  ASSERT_GT(packed.size(), 200u);
  for (std::size_t size = 6; size < packed.size(); size += size < 64 || size + 64 > packed.size() ? 1 : 97) {
    const Result<std::string> text = read_whole({packed.begin(), packed.begin() + static_cast<std::ptrdiff_t>(size)});
    ASSERT_FALSE(text.ok()) << "cut to " << size;
    EXPECT_NE(text.error().what.find(GetParam().name), std::string::npos) << text.error().what;
    ASSERT_TRUE(text.error().offset.has_value());
    EXPECT_LE(*text.error().offset, size);
  }
}

TEST_P(PackedStream, IsRefusedWhenTheFirstHalfIsOverwritten) {
  for (const std::size_t from : {std::size_t{10}, std::size_t{100}, std::size_t{400}}) {
    ByteVector packed = GetParam().pack(noise(5'000));
    std::fill(packed.begin() + static_cast<std::ptrdiff_t>(from),
              packed.begin() + static_cast<std::ptrdiff_t>(from + 2'000), std::uint8_t{0xff});
    const Result<std::string> text = read_whole(packed);
    // stored blocks have nothing that could be wrong
    const bool noticed = !text.ok() || GetParam().pack == zstd_without_checksum;
    EXPECT_TRUE(noticed) << from;
    if (!text.ok()) {
      EXPECT_FALSE(text.error().what.empty()) << from;
    }
  }
}

TEST_P(PackedStream, SurvivesEveryFlippedByte) {
  const ByteVector plain = sample(3'000);
  const ByteVector packed = GetParam().pack(plain);
  for (std::size_t at = 0; at < packed.size(); ++at) {
    ByteVector damaged = packed;
    damaged[at] ^= 0xff;
    const Result<std::string> text = read_whole(damaged, 1 << 20);
    if (!text.ok()) {
      EXPECT_FALSE(text.error().what.empty()) << at;
    } else if (GetParam().pack != zstd_without_checksum) {
      // what was read is what was packed, or the file no longer looks packed
      EXPECT_TRUE(*text == std::string(plain.begin(), plain.end()) ||
                  *text == std::string(damaged.begin(), damaged.end()))
          << at;
    }
  }
}

// The decompressor has taken the last input and still holds output for which there was no room.
TEST_P(PackedStream, GivesEverythingWhenTheRoomEndsInsideTheLastBlock) {
  const ByteVector plain = sample(ByteStream::kWindowBytes + 60'000);
  const ByteVector packed = GetParam().pack(plain);
  ByteStream stream = ByteStream::from_memory(packed);
  Result<const std::uint8_t*> at = stream.more(stream.begin(), ByteStream::kWindowBytes);
  ASSERT_TRUE(at.ok());
  at = stream.more(*at + 20'000, ByteStream::kWindowBytes);
  ASSERT_TRUE(at.ok()) << at.error().message();
  at = stream.more(*at + 20'000, ByteStream::kWindowBytes);
  ASSERT_TRUE(at.ok()) << at.error().message();
  at = stream.more(*at, ByteStream::kWindowBytes + 20'000);
  ASSERT_TRUE(at.ok()) << at.error().message();
  EXPECT_EQ(stream.offset_of(stream.end()), plain.size());
  EXPECT_EQ(std::memcmp(*at, plain.data() + 40'000, plain.size() - 40'000), 0);
}

INSTANTIATE_TEST_SUITE_P(Formats, PackedStream,
                         testing::Values(Packing{"gzip", "gzip", gzip}, Packing{"xz", "xz", xz},
                                         Packing{"zstd", "zstd", zstd_without_checksum},
                                         Packing{"zstdChecked", "zstd", zstd_with_checksum}),
                         [](const testing::TestParamInfo<Packing>& packing) {
                           return std::string(packing.param.label);
                         });

TEST(ByteStream, KnowsThePlainSizeOfMemory) {
  const ByteVector bytes = sample(100);
  ByteStream stream = ByteStream::from_memory(bytes);
  EXPECT_EQ(stream.plain_size(), 100u);
  EXPECT_STREQ(stream.compression(), "");
}

TEST(ByteStream, ReadsAllUpToTheLimitAndNotAByteMore) {
  const ByteVector bytes = sample(std::size_t{2} << 20);
  EXPECT_TRUE(read_whole(bytes, bytes.size()).ok());
  const Result<std::string> refused = read_whole(bytes, bytes.size() - 1);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().what, "holds more than 1 MiB");
}

TEST(ByteStream, StopsUnpackingSoonAfterTheLimit) {
  ByteVector zeros(std::size_t{64} << 20);
  const ByteVector packed = gzip(zeros);
  const Result<std::string> refused = read_whole(packed, std::size_t{3} << 20);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().what, "holds more than 3 MiB");
}

TEST(ByteStream, GivesFewerBytesThanAskedForOnlyAtTheEnd) {
  const ByteVector bytes = sample(10);
  ByteStream stream = ByteStream::from_memory(bytes);
  const Result<const std::uint8_t*> at = stream.more(stream.begin(), std::size_t{10} << 30);
  ASSERT_TRUE(at.ok());
  EXPECT_EQ(stream.end() - *at, 10);
  const Result<const std::uint8_t*> again = stream.more(*at + 10, 1);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(stream.end() - *again, 0);
}

TEST(ByteStream, HoldsOneRequestLargerThanItsWindow) {
  const ByteVector bytes = sample(5 * ByteStream::kWindowBytes);
  ByteStream stream = ByteStream::from_memory(bytes);
  const std::size_t need = 3 * ByteStream::kWindowBytes + 5;
  const Result<const std::uint8_t*> at = stream.more(stream.begin() + 17, need);
  ASSERT_TRUE(at.ok());
  ASSERT_GE(static_cast<std::size_t>(stream.end() - *at), need);
  EXPECT_EQ(stream.offset_of(*at), 17u);
  EXPECT_EQ(std::memcmp(*at, bytes.data() + 17, need), 0);
}

TEST(ByteStream, TakesAnEmptyOrTinyInputAsPlain) {
  for (const ByteVector& bytes : {ByteVector{}, ByteVector{0x1f}, ByteVector{0x1f, 0x8b}, ByteVector{0xfd, '7', 'z'},
                                  ByteVector{0x28, 0xb5, 0x2f}}) {
    const Result<std::string> text = read_whole(bytes);
    ASSERT_TRUE(text.ok());
    EXPECT_EQ(*text, as_text(bytes));
  }
}

class FileStream : public testing::Test {
 protected:
  FileStream() {
    std::string pattern = (std::filesystem::temp_directory_path() / "faultline-stream-XXXXXX").string();
    EXPECT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  ~FileStream() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  std::string write(const ByteVector& bytes) {
    const std::string path = (folder_ / "input").string();
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    return path;
  }
  std::filesystem::path folder_;
};

TEST_F(FileStream, ReadsAFileLikeMemory) {
  const ByteVector plain = sample(2'345'678);
  Result<ByteStream> stream = ByteStream::open(write(plain));
  ASSERT_TRUE(stream.ok());
  EXPECT_EQ(stream->plain_size(), plain.size());
  EXPECT_TRUE(*stream->read_all(std::size_t{1} << 30) == as_text(plain));
  Result<ByteStream> packed = ByteStream::open(write(xz(plain)));
  ASSERT_TRUE(packed.ok());
  EXPECT_FALSE(packed->plain_size().has_value());
  EXPECT_TRUE(*packed->read_all(std::size_t{1} << 30) == as_text(plain));
}

TEST_F(FileStream, SaysWhyAFileCannotBeRead) {
  EXPECT_EQ(ByteStream::open((folder_ / "absent").string()).error().what, "there is no such file");
  EXPECT_EQ(ByteStream::open(folder_.string()).error().what, "is a directory");
  EXPECT_NE(ByteStream::open(write({1, 2, 3}) + "/below").error().what.find("cannot be opened"), std::string::npos);
}

}  // namespace
}  // namespace faultline
