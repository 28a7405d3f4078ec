// Memory over time, in columns and by group.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "facts/facts.h"
#include "view/scene.h"

namespace faultline::view {

// What one event does to the memory of a device. An allocation of 0: pages mapped by hand.
struct Change {
  AllocationId allocation;
  std::uint64_t program_bytes = 0;   // that the program holds
  std::uint64_t reserved_bytes = 0;  // that were taken from the driver for it
  bool is_gain = true;
};

// As facts/usage.h counts: the bytes of all groups together are what it calls allocated.
inline Change change_of(const Facts& facts, std::uint16_t device, const Event& event) {
  Change change;
  if (event.device != device || event.kind > EventKind::kUnmap || event.has(kFailed) ||
      event.kind == EventKind::kAllocFailed)
    return change;
  const HeapUse use = facts.uses.of(event.heap);
  const bool is_map = event.kind == EventKind::kMap || event.kind == EventKind::kUnmap;
  if (use == HeapUse::kElsewhere || use == HeapUse::kOutside) return change;
  if (!is_map && event.allocation.value == 0) return change;
  change.is_gain = event.kind == EventKind::kAlloc || event.kind == EventKind::kMap;
  if (use == HeapUse::kProgram) {
    if (event.kind == EventKind::kFree && event.phase() == FreePhase::kCompleted) return change;
    if (!is_map) change.allocation = event.allocation;
    change.program_bytes = is_map ? event.size_bytes : facts.lifetimes.held_bytes(event.allocation);
    if (!facts.uses.has_framework(device)) change.reserved_bytes = change.program_bytes;
  } else if (is_map || event.kind == EventKind::kAlloc || event.returns_to_heap()) {
    change.reserved_bytes = event.size_bytes;
  }
  return change;
}

inline void apply(std::uint64_t& bytes, std::uint64_t amount, bool is_gain) {
  bytes = is_gain ? bytes + amount : bytes - std::min(bytes, amount);
}

// Where the columns lie, and what each of them holds in all.
Columns measure_columns(const Facts& facts, std::uint16_t device, std::size_t most_columns);
// The bytes of each group at the highest moment of every column.
std::vector<std::uint64_t> measure_groups(const Facts& facts, std::uint16_t device, const Columns& columns,
                                          const Grouping& grouping);

}  // namespace faultline::view
