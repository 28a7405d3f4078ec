#include "sources/core_dump/dump_faults.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "sources/core_dump/exceptions.h"

namespace faultline {
namespace {

constexpr std::size_t kMostFaults = 64;
constexpr std::size_t kWarpsLookedAt = 32;  // of one fault, in search of one whose addresses can be rebuilt

std::uint32_t exception_of(const std::vector<DumpLane>& lanes) {
  for (const DumpLane& lane : lanes) {
    if (lane.exception != 0) return lane.exception;
  }
  return 0;
}

const DumpGrid* grid_of(const DumpTables& tables, std::uint32_t device, std::uint64_t id) {
  for (const DumpGrid& grid : tables.grids) {
    if (grid.device == device && grid.id == id) return &grid;
  }
  return nullptr;
}

class FaultFinder {
 public:
  explicit FaultFinder(DumpTables& tables) : tables_(tables) {}

  std::vector<DumpFault> find() {
    for (const DumpSm& sm : tables_.sms) sm_at_.emplace(sm.place, &sm);
    for (const DumpGrid& grid : tables_.grids) {
      const auto [only, is_first] = only_grids_.try_emplace(grid.device, &grid);
      if (!is_first) only->second = nullptr;
    }
    for (const DumpWarp& warp : tables_.warps) take(warp);
    for (const DumpSm& sm : tables_.sms) {
      if (sm.exception != 0 && !told_sms_.contains(sm.place)) take(sm);
    }
    if (faults_.empty()) take_trapped_warps();
    std::vector<const DumpWarp*> wanted;
    for (const DumpFault& fault : faults_) wanted.insert(wanted.end(), fault.warps.begin(), fault.warps.end());
    tables_.find_registers(wanted);
    for (DumpFault& fault : faults_) tell(fault);
    std::stable_sort(faults_.begin(), faults_.end(),
                     [](const DumpFault& a, const DumpFault& b) { return rank(a) > rank(b); });
    return std::move(faults_);
  }

 private:
  using Key = std::tuple<std::uint32_t, std::uint32_t, bool, std::uint64_t, std::uint64_t>;
  using Stand = std::tuple<std::uint32_t, std::uint64_t, std::uint64_t>;  // device, module, program counter

  // Addresses before none, a known place before none, and what more warps ran into before what fewer did.
  static std::tuple<bool, bool, std::uint64_t> rank(const DumpFault& fault) {
    return {!fault.addresses.lanes.empty(), fault.place.has_value(), fault.warp_count};
  }

  DumpFault* at(const Key& key) {
    const auto found = places_.find(key);
    if (found != places_.end()) return &faults_[found->second];
    if (faults_.size() >= kMostFaults) return nullptr;
    places_.emplace(key, faults_.size());
    faults_.emplace_back();
    return &faults_.back();
  }

  void take(const DumpWarp& warp) {
    std::uint32_t exception = exception_of(tables_.lanes(warp));
    if (exception == 0 && !warp.has_error_pc) return;
    const auto sm = sm_at_.find(warp.sm);
    if (exception == 0 && sm != sm_at_.end()) exception = sm->second->exception;
    DumpFault* const fault =
        at({warp.device, exception, warp.has_error_pc, warp.has_error_pc ? warp.error_pc : 0, warp.grid});
    if (fault == nullptr) return;
    fault->device = warp.device;
    fault->exception = exception;
    if (warp.has_error_pc) fault->pc = warp.error_pc;
    if (fault->warp_count == 0) fault->grid = grid_of(tables_, warp.device, warp.grid);
    ++fault->warp_count;
    if (told_sms_.insert(warp.sm).second) ++fault->sm_count;
    if (fault->warps.size() < kWarpsLookedAt) fault->warps.push_back(&warp);
  }

  // A multiprocessor keeps the exception of warps that have exited. Whose launch they belonged to is known only where there is just one.
  void take(const DumpSm& sm) {
    const auto only = only_grids_.find(sm.device);
    const DumpGrid* const grid = only == only_grids_.end() ? nullptr : only->second;
    DumpFault* const fault = at(
        {sm.device, sm.exception, sm.has_error_pc, sm.has_error_pc ? sm.error_pc : 0, grid == nullptr ? 0 : grid->id});
    if (fault == nullptr) return;
    fault->device = sm.device;
    fault->exception = sm.exception;
    if (sm.has_error_pc) fault->pc = sm.error_pc;
    fault->grid = grid;
    ++fault->sm_count;
  }

  // Nobody noted an exception. A trap instruction leaves such a dump, with the warp at it or just behind it; a dump that somebody asked for does too, and
  // its warps stand anywhere.
  void take_trapped_warps() {
    for (const DumpWarp& warp : tables_.warps) {
      const std::vector<DumpLane> lanes = tables_.lanes(warp);
      const auto active = std::find_if(lanes.begin(), lanes.end(),
                                       [&](const DumpLane& lane) { return (warp.active_lanes >> lane.lane & 1) != 0; });
      if (active == lanes.end()) continue;
      const DumpGrid* const grid = grid_of(tables_, warp.device, warp.grid);
      const auto [trap, is_new] =
          is_trap_.try_emplace({warp.device, grid == nullptr ? 0 : grid->module, active->pc}, false);
      if (is_new && is_trap_.size() <= kMostFaults) trap->second = stands_at_trap(trap->first);
      if (!trap->second) continue;
      DumpFault* const fault = at({warp.device, 0, true, active->pc, warp.grid});
      if (fault == nullptr) continue;
      fault->device = warp.device;
      fault->is_trap = true;
      fault->pc = active->pc;
      fault->grid = grid;
      ++fault->warp_count;
      if (told_sms_.insert(warp.sm).second) ++fault->sm_count;
      if (fault->warps.size() < kWarpsLookedAt) fault->warps.push_back(&warp);
    }
  }

  bool stands_at_trap(const Stand& stand) const {
    const auto [device, module, pc] = stand;
    if (device >= tables_.devices.size() || tables_.devices[device].instruction_bytes != kSassBytes) return false;
    const std::optional<CodePlace> place = find_code(tables_, device, module, pc);
    if (!place) return false;
    const auto is_trap_at = [&](std::uint64_t at) {
      const std::optional<SassInstruction> instruction = instruction_at(*place, at);
      return instruction && is_trap(*instruction);
    };
    return is_trap_at(pc) || (pc >= kSassBytes && is_trap_at(pc - kSassBytes));
  }

  void tell(DumpFault& fault) {
    if (!fault.warps.empty()) fault.warp = fault.warps.front();
    if (!fault.pc || fault.device >= tables_.devices.size()) return;
    fault.place = find_code(tables_, fault.device, fault.grid == nullptr ? 0 : fault.grid->module, *fault.pc);
    const DumpDevice& device = tables_.devices[fault.device];
    if (!fault.place || device.instruction_bytes != kSassBytes || !is_access_exception(fault.exception)) return;
    const std::optional<SassInstruction> instruction = instruction_at(*fault.place, *fault.pc);
    if (!instruction) return;
    fault.access = decode_memory_instruction(*instruction, device.sm_version);
    if (!fault.access) return;
    std::optional<BranchTargets> targets;
    for (const DumpWarp* warp : fault.warps) {
      RebuiltAddresses rebuilt =
          rebuild_addresses(tables_, *warp, *fault.place, *fault.access, fault.grid, device.sm_version, targets);
      if (is_alignment_exception(fault.exception) && rebuilt.result == RebuildResult::kRebuilt &&
          !has_misaligned(rebuilt, *fault.access)) {
        rebuilt.lanes.clear();  // these are not the addresses that it was about
        rebuilt.result = RebuildResult::kOverwritten;
      }
      const bool is_better = fault.addresses.lanes.empty() && (!rebuilt.lanes.empty() || warp == fault.warp);
      if (is_better) {
        fault.warp = warp;
        fault.addresses = std::move(rebuilt);
      }
      if (!fault.addresses.lanes.empty()) break;
    }
  }

  static bool has_misaligned(const RebuiltAddresses& rebuilt, const MemoryInstruction& access) {
    return std::any_of(rebuilt.lanes.begin(), rebuilt.lanes.end(),
                       [&](const LaneAddress& lane) { return lane.address % access.size_bytes != 0; });
  }

  DumpTables& tables_;
  std::map<std::uint64_t, const DumpSm*> sm_at_;
  std::map<std::uint32_t, const DumpGrid*> only_grids_;  // by device; null: there are several
  HashSet<std::uint64_t> told_sms_;
  std::map<Key, std::size_t> places_;
  std::map<Stand, bool> is_trap_;
  std::vector<DumpFault> faults_;
};

}  // namespace

std::vector<DumpFault> find_faults(DumpTables& tables) { return FaultFinder(tables).find(); }

}  // namespace faultline
