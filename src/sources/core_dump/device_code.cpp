#include "sources/core_dump/device_code.h"

namespace faultline {
std::optional<SassInstruction> instruction_at(const CodePlace& place, std::uint64_t address) {
  if (address < place.code_start || (address - place.code_start) % kSassBytes != 0) return std::nullopt;
  ByteCursor cursor(place.code, address - place.code_start);
  const std::uint64_t low = cursor.u64();
  const std::uint64_t high = cursor.u64();
  return cursor.ok() ? std::optional(SassInstruction{low, high}) : std::nullopt;
}

std::optional<CodePlace> find_code(const DumpTables& tables, std::uint32_t device, std::uint64_t module,
                                   std::uint64_t address) {
  for (const bool is_first : {true, false}) {
    for (const DumpModule& candidate : tables.modules) {
      if (candidate.device != device || (candidate.handle == module) != is_first) continue;
      if (std::optional<CodePlace> place = find_in_cubin(candidate.image, address)) return place;
    }
  }
  return std::nullopt;
}

}  // namespace faultline
