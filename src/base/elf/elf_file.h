// ELF files of 64 bits, little-endian: host programs and libraries, NVIDIA's cubins, and the core dumps that hold them.
//
// An ElfFile is a view: it owns nothing and decodes a header when it is asked for, so that opening a library of a gigabyte costs a few pages and a core
// dump with hundreds of thousands of sections costs nothing up front. The bytes are hostile: every offset and size is checked against what there is, and
// sections may all claim the same bytes: what is read or unpacked of them stays in relation to the file's size.
// A file that was cut short still has the sections whose headers and bytes are there.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/byte_cursor.h"
#include "base/result.h"

namespace faultline {

inline constexpr std::uint16_t kElfCore = 4;  // e_type
inline constexpr std::uint16_t kElfMachineCuda = 0xbe;
inline constexpr std::uint32_t kElfSymbolTable = 2;  // sh_type
inline constexpr std::uint32_t kElfStringTable = 3;
inline constexpr std::uint32_t kElfNoBits = 8;
inline constexpr std::uint32_t kElfDynamicSymbols = 11;
inline constexpr std::uint64_t kElfExecutable = 4;  // sh_flags
inline constexpr std::uint64_t kElfCompressed = 0x800;

inline constexpr std::size_t kElfMarkBytes = 16;
inline constexpr std::size_t kElfHeaderBytes = 64;

bool is_elf(Bytes bytes);
// How large an image in memory says that it is: its tables stand at its end. It must be an ELF image.
std::uint64_t elf_image_bytes(const std::uint8_t* image);

struct ElfSection {
  std::uint32_t name = 0;  // into the section names
  std::uint32_t type = 0;
  std::uint64_t flags = 0;
  std::uint64_t address = 0;
  std::uint64_t offset = 0;
  std::uint64_t size_bytes = 0;
  std::uint32_t link = 0;
  std::uint32_t info = 0;
  std::uint64_t entry_bytes = 0;
};

struct ElfSymbol {
  std::string_view name;
  std::uint64_t address = 0;
  std::uint64_t size_bytes = 0;
  std::uint16_t section = 0;
  bool is_function = false;
  bool is_global = false;
};

class ElfFile {
 public:
  // The bytes must outlive the view and everything taken from it.
  static Result<ElfFile> read(Bytes bytes);

  std::uint64_t size() const { return bytes_.size(); }
  std::uint64_t section_count() const { return section_count_; }        // of those whose headers are there
  std::uint64_t missing_sections() const { return missing_sections_; }  // announced, but the file ends before them
  ElfSection section(std::uint64_t index) const;                        // index < section_count()
  std::string_view name(const ElfSection& section) const { return text_at(names_, section.name); }
  std::uint64_t names_section() const { return names_section_; }
  std::optional<ElfSection> find(std::string_view name) const;
  // As they are in the file; empty where they do not lie in it.
  Bytes raw(const ElfSection& section) const;
  // The section's content, unpacked into `storage` where it is compressed; refused where it would be over 64 times as large, which no debug information is.
  Result<Bytes> content(const ElfSection& section, std::vector<std::uint8_t>& storage) const;

  // Calls visit(ElfSymbol) for the defined symbols of each table of the kind. Tables and names that overlap others are left out once as many bytes were read
  // as the file has.
  template <class Visit>
  void for_each_symbol(std::uint32_t table_type, Visit visit) const;

 private:
  static constexpr std::size_t kSectionBytes = 64;
  static constexpr std::size_t kSymbolBytes = 24;

  Bytes bytes_;
  std::uint64_t sections_offset_ = 0;
  std::uint64_t section_count_ = 0;
  std::uint64_t missing_sections_ = 0;
  std::uint64_t names_section_ = 0;
  Bytes names_;
};

template <class Visit>
void ElfFile::for_each_symbol(std::uint32_t table_type, Visit visit) const {
  std::uint64_t table_bytes = bytes_.size();
  std::uint64_t name_bytes = 4 * bytes_.size();  // names share their ends with others
  for (std::uint64_t index = 0; index < section_count_; ++index) {
    const ElfSection table = section(index);
    if (table.type != table_type || table.link >= section_count_) continue;
    const Bytes names = raw(section(table.link));
    const Bytes symbols = raw(table);
    if (names.empty() || names.back() != 0) continue;
    if (symbols.size() > table_bytes) return;
    table_bytes -= symbols.size();
    ByteCursor cursor(symbols);
    while (cursor.remaining() >= kSymbolBytes) {
      const std::uint32_t name = cursor.u32();
      const std::uint8_t kind = cursor.u8();
      cursor.skip(1);
      ElfSymbol symbol;
      symbol.section = cursor.u16();
      symbol.address = cursor.u64();
      symbol.size_bytes = cursor.u64();
      if (symbol.section == 0) continue;
      symbol.is_function = (kind & 15) == 2 || (kind & 15) == 10;  // a function, or one chosen at load time
      symbol.is_global = (kind >> 4) != 0;
      symbol.name = text_at(names, name);
      if (symbol.name.size() >= name_bytes) return;
      name_bytes -= symbol.name.size();
      visit(symbol);
    }
  }
}

}  // namespace faultline
