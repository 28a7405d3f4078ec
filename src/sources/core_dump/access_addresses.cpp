#include "sources/core_dump/access_addresses.h"

#include <algorithm>
#include <map>

namespace faultline {
namespace {

constexpr std::uint64_t kMostInstructionsBetween = 512;

// What may have changed since the instruction at `place`, for a thread that stands at `stopped_at`.
struct Changes {
  bool address = false;  // any part of it
  bool low_half = false;
  bool high_half = false;
  bool guard = false;
};
constexpr Changes kAnyChange = {true, true, true, true};

Changes changes_until(const CodePlace& place, const MemoryInstruction& access, std::uint64_t stopped_at,
                      std::uint32_t sm_version) {
  Changes changes;
  if (stopped_at < place.address || (stopped_at - place.address) / kSassBytes > kMostInstructionsBetween)
    return kAnyChange;
  // The instruction itself is among them: a load that faults still writes its target.
  std::uint64_t at = place.address;
  do {
    const std::optional<SassInstruction> instruction = instruction_at(place, at);
    if (!instruction) return kAnyChange;
    const SassWrites writes = writes_of(*instruction, sm_version);
    if (writes.anything) return kAnyChange;
    if (access.address_register != kZeroRegister) {
      if (writes.touches_register(access.address_register)) changes.low_half = true;
      if (access.address_is_pair && writes.touches_register(static_cast<std::uint8_t>(access.address_register + 1)))
        changes.high_half = true;
      changes.address = changes.address || changes.low_half || changes.high_half;
    }
    if (access.uniform_register) {
      const std::uint8_t uniform = *access.uniform_register;
      if (writes.touches_uniform(uniform) || writes.touches_uniform(static_cast<std::uint8_t>(uniform + 1)))
        changes.address = true;
    }
    if (writes.touches_predicate(access.guard)) changes.guard = true;
    at += kSassBytes;
  } while (at < stopped_at);
  return changes;
}

std::optional<std::uint32_t> word(Bytes bytes, std::uint32_t number) {
  ByteCursor cursor(bytes, std::uint64_t{number} * 4);
  const std::uint32_t value = cursor.u32();
  return cursor.ok() ? std::optional(value) : std::nullopt;
}

std::optional<std::uint64_t> pair(Bytes bytes, std::uint32_t number) {
  const std::optional<std::uint32_t> low = word(bytes, number);
  const std::optional<std::uint32_t> high = word(bytes, number + 1);
  if (!low || !high) return std::nullopt;
  return std::uint64_t{*high} << 32 | *low;
}

std::optional<std::uint64_t> address_of(const MemoryInstruction& access, Bytes registers, Bytes uniforms) {
  std::uint64_t address = 0;
  if (access.address_register != kZeroRegister) {
    const std::optional<std::uint64_t> base =
        access.address_is_pair ? pair(registers, access.address_register)
                               : std::optional<std::uint64_t>(word(registers, access.address_register));
    if (!base) return std::nullopt;
    address = *base << access.shift;
  }
  if (access.uniform_register) {
    const std::optional<std::uint64_t> base = pair(uniforms, *access.uniform_register);
    if (!base) return std::nullopt;
    address += *base;
  }
  return address + static_cast<std::uint64_t>(access.offset);
}

// The address of a register pair of which one half was overwritten. The computation must lead to the half that still stands.
std::optional<std::uint64_t> address_again(const MemoryInstruction& access, PastRegisters& past, std::uint64_t at,
                                           const Changes& changes, Bytes registers) {
  if (access.uniform_register || !access.address_is_pair || access.shift != 0 || changes.low_half == changes.high_half)
    return std::nullopt;
  const std::optional<std::uint32_t> low = past.computed(access.address_register, at);
  const std::optional<std::uint32_t> high = past.computed(static_cast<std::uint8_t>(access.address_register + 1), at);
  const std::optional<std::uint32_t> standing =
      word(registers, std::uint32_t{access.address_register} + (changes.low_half ? 1 : 0));
  if (!low || !high || !standing || *standing != (changes.low_half ? *high : *low)) return std::nullopt;
  return (std::uint64_t{*high} << 32 | *low) + static_cast<std::uint64_t>(access.offset);
}

}  // namespace

RebuiltAddresses rebuild_addresses(const DumpTables& tables, const DumpWarp& warp, const CodePlace& place,
                                   const MemoryInstruction& access, const DumpGrid* grid, std::uint32_t sm_version,
                                   std::optional<BranchTargets>& targets) {
  RebuiltAddresses rebuilt;
  const Bytes uniforms = tables.uniform_registers(warp);
  std::map<std::uint64_t, Changes> changes_at;  // by where a thread stopped: mostly one place for the whole warp
  bool is_overwritten = false;
  bool is_missing = false;
  for (const DumpLane& lane : tables.lanes(warp)) {
    if ((warp.valid_lanes & warp.active_lanes & std::uint32_t{1} << lane.lane) == 0) continue;
    auto found = changes_at.find(lane.pc);
    if (found == changes_at.end())
      found = changes_at.emplace(lane.pc, changes_until(place, access, lane.pc, sm_version)).first;
    const Changes& changes = found->second;
    if (access.guard != kTruePredicate) {
      const std::optional<std::uint32_t> predicate = word(tables.predicates(warp, lane), access.guard);
      if (changes.guard || !predicate) {
        rebuilt.result = RebuildResult::kUnknownThreads;
        rebuilt.executing = 0;
        rebuilt.lanes.clear();
        return rebuilt;
      }
      if ((*predicate != 0) == access.guard_is_negated) continue;
    }
    ++rebuilt.executing;
    if (changes.address && is_overwritten) continue;  // one without an address is enough
    if (changes.address) {
      if (!targets) targets.emplace(place);
      PastRegisters past(tables, warp, lane, place, *targets, grid, sm_version);
      if (const std::optional<std::uint64_t> address =
              address_again(access, past, place.address, changes, tables.registers(warp, lane))) {
        rebuilt.lanes.push_back({lane, *address});
      } else {
        is_overwritten = true;
      }
    } else if (const std::optional<std::uint64_t> address =
                   address_of(access, tables.registers(warp, lane), uniforms)) {
      rebuilt.lanes.push_back({lane, *address});
    } else {
      is_missing = true;
    }
  }
  const bool is_global = access.space == MemorySpace::kGlobal || access.space == MemorySpace::kGeneric;
  if (!is_global) {
    rebuilt.result = RebuildResult::kNotGlobal;
  } else if (is_overwritten) {
    rebuilt.result = RebuildResult::kOverwritten;
  } else if (is_missing || rebuilt.lanes.empty()) {
    rebuilt.result = RebuildResult::kNoRegisters;
  } else {
    rebuilt.result = RebuildResult::kRebuilt;
  }
  if (rebuilt.result != RebuildResult::kRebuilt) rebuilt.lanes.clear();
  std::sort(rebuilt.lanes.begin(), rebuilt.lanes.end(),
            [](const LaneAddress& a, const LaneAddress& b) { return a.lane.lane < b.lane.lane; });
  return rebuilt;
}

}  // namespace faultline
