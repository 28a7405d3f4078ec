// The faults of a core dump: its faulting warps, put together where they say the same.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sources/core_dump/access_addresses.h"

namespace faultline {

struct DumpFault {
  std::uint32_t device = 0;  // row of the device table
  std::uint32_t exception = 0;
  bool is_trap = false;  // no exception is noted anywhere in the dump, and these warps stand at a trap instruction
  std::optional<std::uint64_t> pc;
  const DumpGrid* grid = nullptr;      // null: not known
  std::uint64_t warp_count = 0;        // that say the same; 0: they had all exited
  std::uint64_t sm_count = 0;          // multiprocessors that reported it
  std::vector<const DumpWarp*> warps;  // the first of them
  // Of the warp that tells most:
  const DumpWarp* warp = nullptr;
  std::optional<CodePlace> place;
  std::optional<MemoryInstruction> access;  // only where the exception is one of an access and its PC is known
  RebuiltAddresses addresses;
};

// The best told first. `tables` must outlive them.
std::vector<DumpFault> find_faults(DumpTables& tables);

}  // namespace faultline
