#include "sources/core_dump/device_code.h"

#include "sources/elf/line_table.h"

namespace faultline {
namespace {

constexpr std::size_t kLongestName = 64 * 1024;

std::optional<CodePlace> find_in_image(Bytes image, std::uint64_t address) {
  const Result<ElfFile> cubin = ElfFile::read(image);
  if (!cubin) return std::nullopt;
  CodePlace place;
  std::uint64_t holder = 0;
  for (std::uint64_t index = 1; index < cubin->section_count() && holder == 0; ++index) {
    const ElfSection section = cubin->section(index);
    if ((section.flags & kElfExecutable) == 0 || address < section.address || address - section.address >= section.size_bytes) continue;
    holder = index;
    place.address = address;
    place.code_start = section.address;
    place.code = cubin->raw(section);
  }
  if (holder == 0) return std::nullopt;
  place.function_start = place.code_start;
  std::string_view function;
  cubin->for_each_symbol(kElfSymbolTable, [&](const ElfSymbol& symbol) {
    if (!symbol.is_function || symbol.section != (holder & 0xffff) || address < symbol.address || address - symbol.address >= symbol.size_bytes) return;
    function = symbol.name;
    place.function_start = symbol.address;
  });
  place.function = function.substr(0, kLongestName);
  std::array<std::vector<std::uint8_t>, 3> storage;
  const FoundLines lines = find_lines(line_sections(*cubin, storage), {address});
  place.file = lines.lines[0].file;
  place.line = lines.lines[0].line;
  return place;
}

}  // namespace

std::optional<SassInstruction> CodePlace::instruction(std::uint64_t at) const {
  if (at < code_start || (at - code_start) % kSassBytes != 0) return std::nullopt;
  ByteCursor cursor(code, at - code_start);
  const std::uint64_t low = cursor.u64();
  const std::uint64_t high = cursor.u64();
  return cursor.ok() ? std::optional(SassInstruction{low, high}) : std::nullopt;
}

std::optional<CodePlace> find_code(const DumpTables& tables, std::uint32_t device, std::uint64_t module, std::uint64_t address) {
  for (const bool is_first : {true, false}) {
    for (const DumpModule& candidate : tables.modules) {
      if (candidate.device != device || (candidate.handle == module) != is_first) continue;
      if (std::optional<CodePlace> place = find_in_image(candidate.image, address)) return place;
    }
  }
  return std::nullopt;
}

}  // namespace faultline
