// A cubin as small as it can be: two sections that matter.
#pragma once

#include <elf.h>

#include <cstdint>
#include <cstring>
#include <string>

namespace faultline {

inline std::string small_cubin() {
  std::string names("\0.shstrtab\0.text.kernel\0.nv.info.kernel\0", 40);
  const std::uint16_t parameter[] = {0x1704, 12, 0, 0, 1, 8, 0, 16 << 2};  // the second: offset 8, 16 bytes
  const std::uint16_t other[] = {0x1704, 12, 0, 0, 0, 0, 0, 8 << 2};
  std::string notes(reinterpret_cast<const char*>(parameter), sizeof parameter);
  notes.append(reinterpret_cast<const char*>(other), sizeof other);
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_shoff = sizeof header + names.size() + notes.size();
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = 4;
  header.e_shstrndx = 1;
  Elf64_Shdr sections[4] = {};
  sections[1].sh_name = 1;
  sections[1].sh_offset = sizeof header;
  sections[1].sh_size = names.size();
  sections[2].sh_name = 11;
  sections[3].sh_name = 24;
  sections[3].sh_offset = sizeof header + names.size();
  sections[3].sh_size = notes.size();
  std::string elf(reinterpret_cast<const char*>(&header), sizeof header);
  return elf + names + notes + std::string(reinterpret_cast<const char*>(sections), sizeof sections);
}

}  // namespace faultline
