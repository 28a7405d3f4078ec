// From addresses to source lines, by the line programs of DWARF 2 to 5 (.debug_line), in host programs and in cubins.
//
// A line program is a small machine's code; running it yields rows (address, file, line), each standing until the next. find_lines runs all
// programs once for a whole set of addresses and keeps nothing else, so that its memory does not grow with the debug information. Names are looked up for
// answers alone, and an address is answered once: the time taken is that of the bytes read, whatever they say.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/elf/elf_file.h"

namespace faultline {

struct LineSections {
  Bytes line;          // .debug_line
  Bytes strings;       // .debug_str
  Bytes line_strings;  // .debug_line_str
};

struct SourceLine {
  std::string file;        // with the directory the compiler noted; relative where it noted no absolute one
  std::uint32_t line = 0;  // 0: none found
};

struct FoundLines {
  std::vector<SourceLine> lines;       // one for each address asked for
  std::uint64_t damaged_programs = 0;  // what could not be run to its end
};

FoundLines find_lines(const LineSections& sections, const std::vector<std::uint64_t>& addresses);

// The sections of a file, unpacked into `storage` where they are compressed. Empty sections where there are none.
LineSections line_sections(const ElfFile& file, std::array<std::vector<std::uint8_t>, 3>& storage);

}  // namespace faultline
