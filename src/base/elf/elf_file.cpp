#include "base/elf/elf_file.h"

#include <zlib.h>

#include <algorithm>

#include "base/byte_stream.h"

namespace faultline {
namespace {

constexpr std::uint32_t kNameIndexElsewhere = 0xffff;  // SHN_XINDEX: the real index is in section 0's link
constexpr std::uint32_t kCompressedZlib = 1;
constexpr std::uint32_t kCompressedZstd = 2;
constexpr std::uint64_t kMostUnpackedBytes = std::uint64_t{2} << 30;
constexpr std::uint64_t kMostUnpackedTimes = 64;  // compilers' line tables and strings shrink to a tenth at most
constexpr std::uint64_t kUnpackSlackBytes = 1 << 20;
constexpr std::size_t kUnpackStepBytes = 1 << 20;

// Both grow the storage with what really arrives: an announced size alone allocates nothing.
Status unpack_zlib(Bytes packed, std::uint64_t size_bytes, std::vector<std::uint8_t>& storage) {
  z_stream stream{};
  if (inflateInit(&stream) != Z_OK) return Error{"out of memory in the zlib reader", {}, {}};
  stream.next_in = const_cast<std::uint8_t*>(packed.data());  // zlib's interface; it only reads
  stream.avail_in = static_cast<uInt>(std::min<std::size_t>(packed.size(), std::size_t{1} << 31));
  storage.clear();
  int code = Z_OK;
  while (code == Z_OK && storage.size() < size_bytes) {
    const std::size_t had = storage.size();
    storage.resize(static_cast<std::size_t>(std::min<std::uint64_t>(size_bytes, had + kUnpackStepBytes)));
    stream.next_out = storage.data() + had;
    stream.avail_out = static_cast<uInt>(storage.size() - had);
    code = inflate(&stream, Z_NO_FLUSH);
    storage.resize(storage.size() - stream.avail_out);
  }
  inflateEnd(&stream);
  if (code != Z_OK && code != Z_STREAM_END) return Error{"the zlib data is damaged", {}, {}};
  return Ok{};
}

Status unpack_zstd(Bytes packed, std::uint64_t size_bytes, std::vector<std::uint8_t>& storage) {
  ByteStream stream = ByteStream::from_memory(packed);
  Result<std::string> text = stream.read_all(static_cast<std::size_t>(size_bytes));
  if (!text) return text.error();
  storage.assign(text->begin(), text->end());
  return Ok{};
}

}  // namespace

bool is_elf(Bytes bytes) { return bytes.size() >= kElfMarkBytes && std::memcmp(bytes.data(), "\177ELF", 4) == 0; }

std::uint64_t elf_image_bytes(const std::uint8_t* image) {
  ByteCursor cursor(Bytes(image, kElfHeaderBytes), 32);
  const std::uint64_t segments_offset = cursor.u64(), sections_offset = cursor.u64();
  cursor.skip(4 + 2);
  const std::uint64_t segment_bytes = cursor.u16(), segments = cursor.u16(), section_bytes = cursor.u16(),
                      sections = cursor.u16();
  return std::max({std::uint64_t{kElfHeaderBytes}, sections_offset + sections * section_bytes,
                   segments_offset + segments * segment_bytes});
}

Result<ElfFile> ElfFile::read(Bytes bytes) {
  ByteCursor cursor(bytes);
  const Bytes mark = cursor.take(kElfMarkBytes);
  if (!is_elf(bytes)) return Error{"this is no ELF file", 0, {}};
  if (mark[4] != 2 || mark[5] != 1) return Error{"the ELF file is not of 64 bits and little-endian", 4, {}};
  ElfFile file;
  file.bytes_ = bytes;
  cursor.skip(2 + 2 + 4 + 8 + 8);  // type, machine, version, entry point, segments
  file.sections_offset_ = cursor.u64();
  cursor.skip(4 + 2 + 2 + 2);  // flags, sizes of this header and of segments, their number
  const std::uint16_t entry_bytes = cursor.u16();
  std::uint64_t count = cursor.u16();
  file.names_section_ = cursor.u16();
  if (!cursor.ok()) return Error{"the ELF header is cut short", bytes.size(), {}};
  if (file.sections_offset_ == 0) return file;
  if (entry_bytes != kSectionBytes)
    return Error{"the ELF file's section headers have " + std::to_string(entry_bytes) + " bytes instead of 64", 58, {}};
  if (file.sections_offset_ >= bytes.size()) {
    return Error{"the ELF file ends before its section headers, which are announced at byte " +
                     std::to_string(file.sections_offset_),
                 bytes.size(),
                 {}};
  }
  const std::uint64_t room = (bytes.size() - file.sections_offset_) / kSectionBytes;
  // More sections than 16 bits can count: the first header, which describes none, has the numbers.
  if (room != 0) {
    file.section_count_ = 1;
    const ElfSection first = file.section(0);
    if (count == 0) count = first.size_bytes;
    if (file.names_section_ == kNameIndexElsewhere) file.names_section_ = first.link;
  }
  file.section_count_ = std::min(count, room);
  file.missing_sections_ = count - file.section_count_;
  if (file.names_section_ < file.section_count_) file.names_ = file.raw(file.section(file.names_section_));
  return file;
}

ElfSection ElfFile::section(std::uint64_t index) const {
  FAULTLINE_CHECK(index < section_count_);
  ByteCursor cursor(bytes_, sections_offset_ + index * kSectionBytes);
  ElfSection section;
  section.name = cursor.u32();
  section.type = cursor.u32();
  section.flags = cursor.u64();
  section.address = cursor.u64();
  section.offset = cursor.u64();
  section.size_bytes = cursor.u64();
  section.link = cursor.u32();
  section.info = cursor.u32();
  cursor.skip(8);  // alignment
  section.entry_bytes = cursor.u64();
  return section;
}

std::optional<ElfSection> ElfFile::find(std::string_view name) const {
  for (std::uint64_t index = 1; index < section_count_; ++index) {
    const ElfSection candidate = section(index);
    const Bytes found = ByteCursor(names_, candidate.name).take(name.size() + 1);
    if (!found.empty() && found.back() == 0 && std::equal(name.begin(), name.end(), found.begin())) return candidate;
  }
  return std::nullopt;
}

Bytes ElfFile::raw(const ElfSection& section) const {
  if (section.type == kElfNoBits) return {};
  return ByteCursor(bytes_, section.offset).take(section.size_bytes);
}

Result<Bytes> ElfFile::content(const ElfSection& section, std::vector<std::uint8_t>& storage) const {
  const Bytes packed = raw(section);
  if (packed.empty() && section.size_bytes != 0)
    return Error{"section " + std::string(name(section)) + " lies outside the file", section.offset, {}};
  if ((section.flags & kElfCompressed) == 0) return packed;
  ByteCursor cursor(packed);
  const std::uint32_t kind = cursor.u32();
  cursor.skip(4);
  const std::uint64_t size_bytes = cursor.u64();
  cursor.skip(8);
  if (!cursor.ok() || (kind != kCompressedZlib && kind != kCompressedZstd) || size_bytes > kMostUnpackedBytes) {
    return Error{"section " + std::string(name(section)) + " is compressed in an unknown way", section.offset, {}};
  }
  const Bytes body = cursor.take(cursor.remaining());
  if (size_bytes > body.size() * kMostUnpackedTimes + kUnpackSlackBytes) {
    return Error{"section " + std::string(name(section)) + " claims to unpack to more than " +
                     std::to_string(kMostUnpackedTimes) + " times its size",
                 section.offset,
                 {}};
  }
  const Status unpacked =
      kind == kCompressedZlib ? unpack_zlib(body, size_bytes, storage) : unpack_zstd(body, size_bytes, storage);
  if (!unpacked)
    return Error{"section " + std::string(name(section)) + ": " + unpacked.error().what, section.offset, {}};
  return Bytes(storage);
}

}  // namespace faultline
