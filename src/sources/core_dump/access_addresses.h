// The addresses that a faulting instruction went to, rebuilt thread by thread from the registers in a core dump.
//
// A dump holds the registers as they were when the warp stopped, which is some instructions after the one that faulted: memory answers late. So
// everything the warp ran in between is looked at. An address whose registers may have been overwritten is computed again where that is certain
// (past_registers.h) and one half of it still stands to compare with; else it is not given.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sources/core_dump/past_registers.h"

namespace faultline {

struct LaneAddress {
  DumpLane lane;
  std::uint64_t address = 0;
};

enum class RebuildResult : std::uint8_t {
  kRebuilt,
  kNotGlobal,       // shared or local memory: no address that an allocation could have
  kOverwritten,     // the registers of the address changed before the warp stopped
  kUnknownThreads,  // which threads took part is not known any more
  kNoRegisters,     // the dump does not have them
};

struct RebuiltAddresses {
  RebuildResult result = RebuildResult::kNoRegisters;
  std::uint32_t executing = 0;     // threads that took part; 0: unknown
  std::vector<LaneAddress> lanes;  // by lane; complete where the result is kRebuilt
};

// `place` is where the warp's error lies. The tables must have found the warp's registers.
// `grid` may be null. `targets`, of the same place, is made when it is first needed: the code is gone through once for all warps.
RebuiltAddresses rebuild_addresses(const DumpTables& tables, const DumpWarp& warp, const CodePlace& place,
                                   const MemoryInstruction& access, const DumpGrid* grid, std::uint32_t sm_version,
                                   std::optional<BranchTargets>& targets);

}  // namespace faultline
