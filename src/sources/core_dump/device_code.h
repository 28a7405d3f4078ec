// The code that was on the GPU: which function an address lies in, its source line, its instructions. Reads the loaded cubins of a core dump,
// each at most once, and only those it is sent into.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sources/core_dump/dump_tables.h"
#include "sources/core_dump/sass.h"

namespace faultline {

struct CodePlace {
  std::string function;          // mangled; empty: no symbol covers the address
  std::uint64_t function_start = 0;
  std::string file;
  std::uint32_t line = 0;
  std::uint64_t address = 0;
  std::uint64_t code_start = 0;  // address of the first byte of `code`
  Bytes code;                    // the section that holds the address

  // Null where the address is not one of an instruction in this code.
  std::optional<SassInstruction> instruction(std::uint64_t at) const;
};

// `module`: the handle of the one to look into first; others follow, for functions that live elsewhere.
std::optional<CodePlace> find_code(const DumpTables& tables, std::uint32_t device, std::uint64_t module, std::uint64_t address);

}  // namespace faultline
