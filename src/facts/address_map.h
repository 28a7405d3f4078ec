// Where an address lies at one moment: in which allocation, or how far from which.
//
// Tensors come before segments: of two allocations that hold or border an address, the program's own is named. An address inside memory that was
// given back is told with what was there last.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/byte_range.h"
#include "facts/heap_uses.h"
#include "facts/lifetimes.h"
#include "trace/trace.h"

namespace faultline {

enum class Where : std::uint8_t { kUnknown, kInside, kPastEnd, kBeforeStart, kFreed };

struct AddressPlace {
  Where where = Where::kUnknown;
  AllocationId allocation;
  std::uint64_t distance_bytes = 0;  // inside, freed: from its start; past the end: from its end; before: to its start
};

class AddressMap {
 public:
  // The state right after `event`. All arguments must outlive the map.
  AddressMap(const Trace& trace, const Lifetimes& lifetimes, const HeapUses& uses, std::uint32_t event);

  bool is_mapped(std::uint64_t address) const;      // the recording knows of memory there that a kernel may touch
  AddressPlace place(std::uint64_t address) const;  // relative to any allocation; goes through all of them
  // whether place() would find it inside one, alive or freed; quick, for words of which most are no pointers
  bool was_memory(std::uint64_t address) const;
  AddressPlace relative_to(AllocationId allocation, std::uint64_t address) const;
  ByteRange range_of(AllocationId allocation) const;  // what was asked for
  bool knows_memory() const { return !mapped_.empty(); }

 private:
  const Trace& trace_;
  const Lifetimes& lifetimes_;
  const HeapUses& uses_;
  std::uint32_t event_;
  std::vector<ByteRange> mapped_;  // sorted, apart from each other
  // likewise, of all allocations so far; made when it is first asked for
  mutable std::optional<std::vector<ByteRange>> ever_;
};

}  // namespace faultline
