// The code that was on the GPU: which function an address lies in, its source line, its instructions. Reads the loaded cubins of a core dump,
// each at most once, and only those it is sent into.
#pragma once

#include <cstdint>
#include <optional>

#include "base/elf/device_code.h"
#include "sources/core_dump/dump_tables.h"
#include "sources/core_dump/sass.h"

namespace faultline {

// Null where the address is not one of an instruction in this code.
std::optional<SassInstruction> instruction_at(const CodePlace& place, std::uint64_t address);

// `module`: the handle of the one to look into first; others follow, for functions that live elsewhere.
std::optional<CodePlace> find_code(const DumpTables& tables, std::uint32_t device, std::uint64_t module,
                                   std::uint64_t address);

}  // namespace faultline
