#include "base/zip.h"

#include <zlib.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

#include "base/byte_cursor.h"
#include "base/byte_stream.h"

namespace faultline {
namespace {

constexpr std::uint32_t kLocal = 0x04034b50, kCentral = 0x02014b50, kEnd = 0x06054b50;
constexpr std::size_t kEndBytes = 22, kMostCommentBytes = 65535;
constexpr std::uint16_t kVersion = 20, kStored = 0, kDeflated = 8;
constexpr std::uint16_t kEncrypted = 1, kUtf8 = 1 << 11;
constexpr std::uint64_t kMostBytes = std::numeric_limits<std::uint32_t>::max();

template <class Number>
void put(std::string& out, Number number) {
  for (std::size_t i = 0; i < sizeof(Number); ++i)
    out += static_cast<char>(static_cast<std::uint64_t>(number) >> 8 * i);
}

// A day and a time of MS-DOS, in UTC: so an archive does not tell where it was made.
std::pair<std::uint16_t, std::uint16_t> dos_time(std::time_t changed) {
  std::tm parts{};
  ::gmtime_r(&changed, &parts);
  if (parts.tm_year < 80 || parts.tm_year > 207) return {0, 1 << 5 | 1};
  return {static_cast<std::uint16_t>(parts.tm_hour << 11 | parts.tm_min << 5 | parts.tm_sec / 2),
          static_cast<std::uint16_t>((parts.tm_year - 80) << 9 | (parts.tm_mon + 1) << 5 | parts.tm_mday)};
}

// Deflated, without a header; nothing where that is no smaller.
std::optional<std::string> deflated(std::string_view content) {
  z_stream stream{};
  if (deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY) != Z_OK) return std::nullopt;
  std::string packed(content.size(), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));  // zlib's interface; it only reads
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  const int code = ::deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  if (code != Z_STREAM_END || packed.size() >= content.size()) return std::nullopt;
  return packed;
}

Status inflated(Bytes packed, std::string& content) {
  z_stream stream{};
  if (inflateInit2(&stream, -15) != Z_OK) return Error{"out of memory in the zip reader", {}, {}};
  stream.next_in = const_cast<std::uint8_t*>(packed.data());
  stream.avail_in = static_cast<uInt>(packed.size());
  stream.next_out = reinterpret_cast<Bytef*>(content.data());
  stream.avail_out = static_cast<uInt>(content.size());
  const int code = ::inflate(&stream, Z_FINISH);
  const bool whole = stream.total_out == content.size();
  inflateEnd(&stream);
  // an entry of nothing leaves zlib no room to say that it has ended
  if (!whole || (code != Z_STREAM_END && !content.empty())) return Error{"the zip data is damaged", {}, {}};
  return Ok{};
}

std::uint32_t checksum(std::string_view content) {
  return static_cast<std::uint32_t>(
      ::crc32_z(0, reinterpret_cast<const Bytef*>(content.data()), static_cast<z_size_t>(content.size())));
}

struct Entry {
  std::string name;
  std::uint16_t method = 0;
  std::uint32_t checksum = 0, packed_bytes = 0, bytes = 0, offset = 0;
};

Error damaged(const char* what, std::uint64_t offset) {
  return {std::string("the zip archive is damaged: ") + what, offset, "Copy or download it again."};
}

// Its directory, from the end of the file.
Result<std::vector<Entry>> directory_of(Bytes archive) {
  if (archive.size() < kEndBytes) return damaged("it ends too early", archive.size());
  const std::size_t first = archive.size() - std::min(archive.size(), kEndBytes + kMostCommentBytes);
  std::size_t at = archive.size() - kEndBytes;
  while (ByteCursor(archive, at).u32() != kEnd) {
    if (at-- == first) return damaged("its directory is missing", archive.size());
  }
  ByteCursor end(archive, at + 4);
  const std::uint16_t disk = end.u16(), directory_disk = end.u16(), here = end.u16(), count = end.u16();
  const std::uint32_t bytes = end.u32(), begin = end.u32();
  if (disk != 0 || directory_disk != 0 || here != count || begin == kMostBytes)
    return Error{"a zip archive of several parts, or of more than 4 GiB, is not read", {}, {}};
  if (count > kMostZipEntries) return Error{"the zip archive holds too many files", {}, {}};
  if (std::uint64_t{begin} + bytes > at) return damaged("its directory does not fit into it", at);
  ByteCursor cursor(archive.first(at), begin);
  std::vector<Entry> entries;
  std::uint64_t all = 0;
  for (std::uint16_t i = 0; i < count; ++i) {
    const std::uint64_t stands_at = cursor.offset();
    if (cursor.u32() != kCentral) return damaged("its directory holds something else", stands_at);
    Entry entry;
    cursor.u16(), cursor.u16();  // made by, needs: a mode is looked at whoever claims to have made it
    const std::uint16_t flags = cursor.u16();
    entry.method = cursor.u16();
    cursor.u32();  // time and day
    entry.checksum = cursor.u32(), entry.packed_bytes = cursor.u32(), entry.bytes = cursor.u32();
    const std::uint16_t name_bytes = cursor.u16(), more_bytes = cursor.u16(), comment_bytes = cursor.u16();
    cursor.u16(), cursor.u16();  // disk, whether it is text
    const std::uint32_t mode = cursor.u32() >> 16;
    entry.offset = cursor.u32();
    const Bytes name = cursor.take(name_bytes);
    cursor.take(more_bytes), cursor.take(comment_bytes);
    if (!cursor.ok()) return damaged("its directory ends too early", stands_at);
    entry.name.assign(name.begin(), name.end());
    if (const std::uint32_t kind = mode & 0170000U; kind != 0 && kind != 0100000U && kind != 0040000U)
      return Error{"the zip archive holds a link or a device, which is not followed", {}, "It is not read."};
    if ((flags & kEncrypted) != 0) return Error{"an encrypted zip archive is not read", {}, "Unpack it first."};
    if (entry.method != kStored && entry.method != kDeflated)
      return Error{"the zip archive is compressed in a way that is not known here", {}, "Unpack it first."};
    all += entry.bytes;
    if (all > most_unpacked_bytes(archive.size()))
      return Error{"the zip archive unpacks to over 512 times its size", {}, "No recording is like that."};
    if (!entry.name.ends_with('/')) entries.push_back(std::move(entry));
  }
  return entries;
}

}  // namespace

Status ZipWriter::add(std::string_view name, std::string_view content, std::time_t changed) {
  const Error too_large{"there is more than a zip archive holds (4 GiB)", {}, {}};
  if (content.size() >= kMostBytes || entries_ >= kMostZipEntries) return too_large;
  const std::optional<std::string> packed = deflated(content);
  const std::string_view body = packed ? std::string_view(*packed) : content;
  if (archive_.size() + directory_.size() + body.size() + 4 * name.size() + 256 >= kMostBytes) return too_large;
  const auto offset = static_cast<std::uint32_t>(archive_.size());
  std::string fields;  // that both headers have
  put(fields, kVersion), put(fields, kUtf8), put(fields, packed ? kDeflated : kStored);
  const auto [time, day] = dos_time(changed);
  put(fields, time), put(fields, day), put(fields, checksum(content));
  put(fields, static_cast<std::uint32_t>(body.size())), put(fields, static_cast<std::uint32_t>(content.size()));
  put(fields, static_cast<std::uint16_t>(name.size())), put(fields, std::uint16_t{0});
  put(archive_, kLocal);
  archive_.append(fields).append(name).append(body);
  put(directory_, kCentral), put(directory_, static_cast<std::uint16_t>(3 << 8 | kVersion));  // Unix, for the mode
  directory_ += fields;
  put(directory_, std::uint16_t{0}), put(directory_, std::uint16_t{0}), put(directory_, std::uint16_t{0});
  put(directory_, std::uint32_t{0100600u << 16}), put(directory_, offset);
  directory_ += name;
  ++entries_;
  return Ok{};
}

std::string ZipWriter::finish() {
  const auto begin = static_cast<std::uint32_t>(archive_.size());
  const auto bytes = static_cast<std::uint32_t>(directory_.size());
  archive_ += directory_;
  put(archive_, kEnd), put(archive_, std::uint32_t{0});
  put(archive_, entries_), put(archive_, entries_), put(archive_, bytes), put(archive_, begin);
  put(archive_, std::uint16_t{0});
  return std::move(archive_);
}

Status read_zip(std::span<const std::uint8_t> archive, const TakeZipEntry& take) {
  Result<std::vector<Entry>> entries = directory_of(archive);
  if (!entries) return entries.error();
  for (const Entry& entry : *entries) {
    ByteCursor cursor(archive, entry.offset);
    if (cursor.u32() != kLocal) return damaged("a file is not where its directory says", entry.offset);
    cursor.take(22);
    const std::uint16_t name_bytes = cursor.u16(), more_bytes = cursor.u16();
    cursor.take(std::uint64_t{name_bytes} + more_bytes);
    const Bytes packed = cursor.take(entry.packed_bytes);
    if (!cursor.ok()) return damaged("a file ends too early", entry.offset);
    std::string content;
    if (entry.method == kStored) {
      if (entry.packed_bytes != entry.bytes) return damaged("a file has two sizes", entry.offset);
      content.assign(packed.begin(), packed.end());
    } else {
      if (entry.bytes > most_unpacked_bytes(entry.packed_bytes))
        return damaged("a file has no such size", entry.offset);
      content.resize(entry.bytes);
      if (Status unpacked = inflated(packed, content); !unpacked)
        return damaged("a file cannot be unpacked", entry.offset);
    }
    if (checksum(content) != entry.checksum) return damaged("a file is not what was packed", entry.offset);
    if (Status taken = take(entry.name, content); !taken) return taken;
  }
  return Ok{};
}

}  // namespace faultline
