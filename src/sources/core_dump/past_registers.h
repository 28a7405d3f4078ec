// Registers as they were before something overwrote them.
//
// A load often overwrites the register its address came from (LDG R2, [R2.64]). The value can often be computed again: by the instruction that made it,
// from registers that still hold what they held then, from the kernel's parameters, and from the thread's own indices. Only what is certain is computed: the
// way back leads through straight code that no branch enters, over integer moves, sums and products; all else gives nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sources/core_dump/device_code.h"

namespace faultline {

// Where the branches of a piece of code lead.
class BranchTargets {
 public:
  explicit BranchTargets(const CodePlace& place);
  // Whether any may lead to an instruction behind `first`, up to `last`.
  bool any_in(std::uint64_t first, std::uint64_t last) const;

 private:
  std::vector<std::uint64_t> targets_;  // in order
  bool anywhere_ = false;               // some lead to an address in a register
};

class PastRegisters {
 public:
  // Of a thread that stopped at lane.pc. `place` holds the code; everything must outlive this. `grid` may be null.
  PastRegisters(const DumpTables& tables, const DumpWarp& warp, const DumpLane& lane, const CodePlace& place,
                const BranchTargets& targets, const DumpGrid* grid, std::uint32_t sm_version);

  // The register's value when the instruction at `at` was about to run, computed by the instruction that made it: also where the register still holds it.
  std::optional<std::uint32_t> computed(std::uint8_t number, std::uint64_t at) { return computed(number, at, 0); }

 private:
  std::optional<std::uint32_t> computed(std::uint8_t number, std::uint64_t at, unsigned depth);
  std::optional<std::uint32_t> value(std::uint8_t number, std::uint64_t at, unsigned depth);
  std::optional<std::uint32_t> uniform_value(std::uint8_t number, std::uint64_t at);
  std::optional<std::uint32_t> evaluate(const SassInstruction& made_by, std::uint64_t at, std::uint8_t number,
                                        unsigned depth);
  std::optional<std::uint64_t> product(const SassInstruction& made_by, std::uint64_t at, unsigned depth, bool is_wide);
  std::optional<std::uint64_t> sum(const SassInstruction& made_by, std::uint64_t at, unsigned depth);
  std::optional<std::uint64_t> carry(std::uint8_t predicate, std::uint64_t at, unsigned depth);
  std::optional<std::uint32_t> second_operand(const SassInstruction& instruction, std::uint64_t at, unsigned depth);
  std::optional<std::uint32_t> parameter(const SassInstruction& load, std::uint32_t which) const;
  template <class Touches>
  bool is_unchanged(std::uint64_t at, Touches touches) const;
  template <class Touches>
  std::optional<std::uint64_t> maker(std::uint64_t before, Touches touches) const;

  const DumpTables& tables_;
  const DumpWarp& warp_;
  const DumpLane& lane_;
  const CodePlace& place_;
  const BranchTargets& targets_;
  const DumpGrid* grid_;
  std::uint32_t sm_version_;
  unsigned steps_left_;
};

}  // namespace faultline
