#include "base/elf/line_table.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace faultline {
namespace {

constexpr std::uint64_t kContentPath = 1;       // DW_LNCT_path
constexpr std::uint64_t kContentDirectory = 2;  // DW_LNCT_directory_index
constexpr std::size_t kMostFormats = 32;
constexpr std::uint64_t kMostEntries = 1 << 20;
constexpr std::size_t kLongestFileName = 4096;

// A name where it stands. How far it reaches is found when it is asked for: entries may all name the same long text.
struct Name {
  Bytes in;
  std::uint64_t offset = 0;

  std::string_view text() const { return text_at(in, offset).substr(0, kLongestFileName); }
};

struct FileEntry {
  Name name;
  std::uint64_t directory = 0;
};

// What stands before the code of a line program.
struct ProgramHeader {
  std::uint16_t version = 0;
  bool is_64bit = false;
  std::uint8_t shortest_instruction = 1;
  std::uint8_t operations_each = 1;
  std::int8_t line_base = 0;
  std::uint8_t line_range = 1;
  std::uint8_t opcode_base = 1;
  std::vector<std::uint8_t> operand_counts;
  std::vector<Name> directories;
  std::vector<FileEntry> files;
  Bytes code;
};

struct EntryFormat {
  std::uint64_t content = 0;
  std::uint64_t form = 0;
};

class HeaderReader {
 public:
  HeaderReader(const LineSections& sections, Bytes unit, bool is_64bit)
      : sections_(sections), unit_(unit), cursor_(unit) {
    header_.is_64bit = is_64bit;
  }

  std::optional<ProgramHeader> read() {
    header_.version = cursor_.u16();
    if (header_.version < 2 || header_.version > 5) return std::nullopt;
    if (header_.version >= 5) cursor_.skip(2);  // sizes of an address and of a segment selector
    const std::uint64_t length = offset_number();
    const std::uint64_t code_start = cursor_.offset() + length;
    if (!cursor_.ok() || length > unit_.size() || code_start > unit_.size()) return std::nullopt;
    header_.shortest_instruction = cursor_.u8();
    if (header_.version >= 4) header_.operations_each = cursor_.u8();
    cursor_.skip(1);  // whether rows begin as statements
    header_.line_base = static_cast<std::int8_t>(cursor_.u8());
    header_.line_range = cursor_.u8();
    header_.opcode_base = cursor_.u8();
    if (header_.line_range == 0 || header_.opcode_base == 0) return std::nullopt;
    for (unsigned opcode = 1; opcode < header_.opcode_base; ++opcode) header_.operand_counts.push_back(cursor_.u8());
    if (header_.version >= 5) {
      read_tables();
    } else {
      read_old_tables();
    }
    if (!cursor_.ok()) return std::nullopt;
    header_.code = unit_.subspan(static_cast<std::size_t>(code_start));
    return std::move(header_);
  }

 private:
  Name here() const { return {unit_, cursor_.offset()}; }
  std::uint64_t offset_number() { return header_.is_64bit ? cursor_.u64() : cursor_.u32(); }

  // Versions 2 to 4: names one after the other, an empty one ends the list. Directory 0 is the compiler's own, which only .debug_info names.
  void read_old_tables() {
    header_.directories.emplace_back();
    while (cursor_.ok()) {
      const Name name = here();
      if (cursor_.text().empty()) break;
      header_.directories.push_back(name);
    }
    header_.files.emplace_back();
    while (cursor_.ok()) {
      FileEntry entry;
      entry.name = here();
      if (cursor_.text().empty()) break;
      entry.directory = cursor_.uleb();
      (void)cursor_.uleb();  // time
      (void)cursor_.uleb();  // size
      header_.files.push_back(entry);
    }
  }

  std::vector<EntryFormat> read_formats() {
    std::vector<EntryFormat> formats(cursor_.u8());
    for (EntryFormat& format : formats) format = {cursor_.uleb(), cursor_.uleb()};
    return formats;
  }

  void read_tables() {
    const std::vector<EntryFormat> directory_formats = read_formats();
    for (const FileEntry& entry : read_entries(directory_formats)) header_.directories.push_back(entry.name);
    header_.files = read_entries(read_formats());
  }

  std::vector<FileEntry> read_entries(const std::vector<EntryFormat>& formats) {
    std::vector<FileEntry> entries;
    const std::uint64_t count = cursor_.uleb();
    if (formats.size() > kMostFormats || count > kMostEntries || (formats.empty() && count != 0)) {
      cursor_.skip(~std::uint64_t{0});
      return entries;
    }
    for (std::uint64_t i = 0; i < count && cursor_.ok(); ++i) {
      FileEntry entry;
      for (const EntryFormat& format : formats) read_attribute(format, entry);
      entries.push_back(entry);
    }
    return entries;
  }

  void read_attribute(const EntryFormat& format, FileEntry& entry) {
    Name text;
    std::uint64_t number = 0;
    switch (format.form) {
      case 0x08: text = here(), (void)cursor_.text(); break;               // string
      case 0x0e: text = {sections_.strings, offset_number()}; break;       // strp
      case 0x1f: text = {sections_.line_strings, offset_number()}; break;  // line_strp
      case 0x0b: number = cursor_.u8(); break;                             // data1
      case 0x05: number = cursor_.u16(); break;                            // data2
      case 0x06: number = cursor_.u32(); break;                            // data4
      case 0x07: number = cursor_.u64(); break;                            // data8
      case 0x0f: number = cursor_.uleb(); break;                           // udata
      case 0x1e: cursor_.skip(16); break;                                  // data16, a checksum
      case 0x09: cursor_.skip(cursor_.uleb()); break;                      // block
      case 0x0a: cursor_.skip(cursor_.u8()); break;                        // block1
      default: cursor_.skip(~std::uint64_t{0});  // of unknown length: nothing behind it can be read
    }
    if (format.content == kContentPath) entry.name = text;
    if (format.content == kContentDirectory) entry.directory = number;
  }

  const LineSections& sections_;
  Bytes unit_;
  ByteCursor cursor_;
  ProgramHeader header_;
};

std::string path_of(const ProgramHeader& header, std::uint64_t file) {
  if (file >= header.files.size()) return {};
  const FileEntry& entry = header.files[static_cast<std::size_t>(file)];
  const std::string_view name = entry.name.text();
  if (name.empty() || name.front() == '/' || entry.directory >= header.directories.size()) return std::string(name);
  std::string path(header.directories[static_cast<std::size_t>(entry.directory)].text());
  // From version 5 on the first directory is the compiler's own, which others may stand below.
  if (header.version >= 5 && entry.directory != 0 && !path.starts_with('/')) {
    if (const std::string_view first = header.directories[0].text(); !first.empty())
      path = std::string(first) + '/' + path;
  }
  if (!path.empty() && path.back() != '/') path += '/';
  return path += name;
}

struct Wanted {
  std::uint64_t address = 0;
  std::size_t place = 0;  // in the answer
};

// The addresses asked for, in order; those that have their answer are stepped over.
class Questions {
 public:
  explicit Questions(const std::vector<std::uint64_t>& addresses) : next_(addresses.size() + 1) {
    for (std::size_t i = 0; i < addresses.size(); ++i) wanted_.push_back({addresses[i], i});
    std::sort(wanted_.begin(), wanted_.end(), [](const Wanted& a, const Wanted& b) { return a.address < b.address; });
    for (std::size_t i = 0; i < next_.size(); ++i) next_[i] = i;
  }

  // Calls answer(place) for each open question in [begin, end), which is then closed.
  template <class Answer>
  void close(std::uint64_t begin, std::uint64_t end, Answer answer) {
    const auto first = std::lower_bound(wanted_.begin(), wanted_.end(), begin,
                                        [](const Wanted& one, std::uint64_t address) { return one.address < address; });
    for (std::size_t at = open_from(static_cast<std::size_t>(first - wanted_.begin()));
         at < wanted_.size() && wanted_[at].address < end; at = open_from(at)) {
      answer(wanted_[at].place);
      next_[at] = at + 1;
    }
  }

 private:
  std::size_t open_from(std::size_t at) {
    std::size_t open = at;
    while (next_[open] != open) open = next_[open];
    while (next_[at] != open) at = std::exchange(next_[at], open);  // the next one who asks goes straight there
    return open;
  }

  std::vector<Wanted> wanted_;
  std::vector<std::size_t> next_;  // itself where the question is open; the last stands for the end
};

// Runs one program and answers the addresses that its rows cover.
class LineMachine {
 public:
  LineMachine(const ProgramHeader& header, Questions& questions, std::vector<SourceLine>& lines)
      : header_(header), questions_(questions), lines_(lines), cursor_(header.code) {}

  bool run() {
    while (cursor_.remaining() != 0) {
      const std::uint8_t opcode = cursor_.u8();
      if (opcode >= header_.opcode_base) {
        const unsigned adjusted = opcode - header_.opcode_base;
        advance(adjusted / header_.line_range);
        row_.line += static_cast<std::uint32_t>(header_.line_base + static_cast<int>(adjusted % header_.line_range));
        emit();
      } else if (opcode == 0) {
        extended();
      } else {
        standard(opcode);
      }
      if (!cursor_.ok()) return false;
    }
    return true;
  }

 private:
  struct Row {
    std::uint64_t address = 0;
    std::uint64_t file = 1;
    std::uint32_t line = 1;
  };

  void advance(std::uint64_t operations) {
    // Machines that put several operations into one instruction are not among those we read: the index of the operation stays 0.
    row_.address += operations * header_.shortest_instruction / std::max<std::uint8_t>(header_.operations_each, 1);
  }

  void standard(std::uint8_t opcode) {
    switch (opcode) {
      case 1: emit(); break;                                                      // copy
      case 2: advance(cursor_.uleb()); break;                                     // advance_pc
      case 3: row_.line += static_cast<std::uint32_t>(cursor_.sleb()); break;     // advance_line
      case 4: row_.file = cursor_.uleb(); break;                                  // set_file
      case 8: advance((255u - header_.opcode_base) / header_.line_range); break;  // const_add_pc
      case 9: row_.address += cursor_.u16(); break;                               // fixed_advance_pc
      default:
        for (unsigned i = 0; i < header_.operand_counts[opcode - 1u]; ++i) (void)cursor_.uleb();
    }
  }

  void extended() {
    const std::uint64_t length = cursor_.uleb();
    const Bytes body = cursor_.take(length);
    if (body.empty()) return;
    ByteCursor operand(body, 1);
    if (body[0] == 1) {  // end_sequence
      emit();
      row_ = {};
      previous_.reset();
    } else if (body[0] == 2) {  // set_address
      row_.address = body.size() >= 9 ? operand.u64() : operand.u32();
      if (!previous_) is_dropped_ = row_.address == 0;
    }
  }

  // The previous row stands from its address up to this one's.
  void emit() {
    if (previous_ && !is_dropped_ && previous_->address < row_.address && previous_->line != 0) {
      questions_.close(previous_->address, row_.address, [&](std::size_t place) {
        lines_[place] = {path_of(header_, previous_->file), previous_->line};
      });
    }
    previous_ = row_;
  }

  const ProgramHeader& header_;
  Questions& questions_;
  std::vector<SourceLine>& lines_;
  ByteCursor cursor_;
  Row row_;
  std::optional<Row> previous_;  // of the same sequence
  bool is_dropped_ = false;      // a linker leaves the lines of code that it dropped at address 0
};

}  // namespace

FoundLines find_lines(const LineSections& sections, const std::vector<std::uint64_t>& addresses) {
  FoundLines found;
  found.lines.resize(addresses.size());
  Questions questions(addresses);
  ByteCursor cursor(sections.line);
  while (cursor.remaining() != 0) {
    std::uint64_t length = cursor.u32();
    const bool is_64bit = length == 0xffffffff;
    if (is_64bit) length = cursor.u64();
    const Bytes unit = cursor.take(length);
    if (!cursor.ok()) {
      ++found.damaged_programs;
      break;
    }
    const std::optional<ProgramHeader> header = HeaderReader(sections, unit, is_64bit).read();
    if (!header || !LineMachine(*header, questions, found.lines).run()) ++found.damaged_programs;
  }
  return found;
}

LineSections line_sections(const ElfFile& file, std::array<std::vector<std::uint8_t>, 3>& storage) {
  const auto bytes_of = [&](std::string_view name, std::size_t place) -> Bytes {
    const std::optional<ElfSection> section = file.find(name);
    if (!section) return {};
    const Result<Bytes> content = file.content(*section, storage[place]);
    return content ? *content : Bytes{};
  };
  return {bytes_of(".debug_line", 0), bytes_of(".debug_str", 1), bytes_of(".debug_line_str", 2)};
}

}  // namespace faultline
