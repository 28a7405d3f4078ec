#include "sources/core_dump/past_registers.h"

#include <algorithm>
#include <array>

namespace faultline {
namespace {

constexpr unsigned kDeepest = 12;
constexpr unsigned kMostSteps = 64;  // instructions computed again for one thread
constexpr std::uint64_t kFarthestInstructions = 256;

enum SassOperation : std::uint32_t {
  kMove = 0x002,
  kSum = 0x010,
  kProduct = 0x024,
  kWideProduct = 0x025,
  kUniformConstant = 0x0b9,
  kSpecial = 0x119,
  kSynchronised = 0x145,
  kBranch = 0x147,
  kConstant = 0x182
};
enum OperandForm : std::uint32_t { kRegisterForm = 1, kImmediateForm = 4, kUniformForm = 6 };

bool is_guarded(const SassInstruction& instruction) { return instruction.bits(12, 4) != kTruePredicate; }

// The bits from 72 on, up to those of scheduling, without the ones named: what is left must be what the plain forms of an operation have.
bool has_plain_options(const SassInstruction& instruction, std::uint32_t expected, std::uint32_t free) {
  const std::uint32_t uniform_mark = 1u << (91 - 64);
  const std::uint32_t options = instruction.bits(64, 32) & 0x0fffff00 & ~free & ~uniform_mark;
  return options == (expected & ~free);
}
constexpr std::uint32_t option(unsigned bit) { return 1u << (bit - 64); }

std::uint32_t negated_if(std::uint32_t value, bool is_negated) { return is_negated ? 0 - value : value; }

// Where a branch may lead. Encodings of the distance differ between generations; both readings count.
std::array<std::uint64_t, 2> targets_of(const SassInstruction& branch, std::uint64_t at) {
  const auto near = static_cast<std::int64_t>(static_cast<std::int32_t>(branch.bits(32, 32)));
  const auto high = static_cast<std::int64_t>(static_cast<std::int32_t>(branch.bits(32, 32)) >> 2);
  const std::int64_t split = (high * 256 + static_cast<std::int64_t>(branch.bits(16, 8))) * 4;
  return {at + kSassBytes + static_cast<std::uint64_t>(near), at + kSassBytes + static_cast<std::uint64_t>(split)};
}

std::optional<std::uint32_t> word(Bytes bytes, std::uint64_t offset) {
  ByteCursor cursor(bytes, offset);
  const std::uint32_t value = cursor.u32();
  return cursor.ok() ? std::optional(value) : std::nullopt;
}

}  // namespace

BranchTargets::BranchTargets(const CodePlace& place) {
  for (std::uint64_t offset = 0; offset + kSassBytes <= place.code.size(); offset += kSassBytes) {
    const std::uint64_t at = place.code_start + offset;
    const SassInstruction instruction = *instruction_at(place, at);
    switch (instruction.operation()) {
      case kBranch:
      case kSynchronised:
        for (const std::uint64_t target : targets_of(instruction, at)) targets_.push_back(target);
        break;
      case 0x149:
      case 0x14a:
      case 0x14c: anywhere_ = true; break;  // BRX, JMP, JMX
      default: break;
    }
  }
  std::sort(targets_.begin(), targets_.end());
}

bool BranchTargets::any_in(std::uint64_t first, std::uint64_t last) const {
  const auto behind = std::upper_bound(targets_.begin(), targets_.end(), first);
  return anywhere_ || (behind != targets_.end() && *behind <= last);
}

PastRegisters::PastRegisters(const DumpTables& tables, const DumpWarp& warp, const DumpLane& lane,
                             const CodePlace& place, const BranchTargets& targets, const DumpGrid* grid,
                             std::uint32_t sm_version)
    : tables_(tables),
      warp_(warp),
      lane_(lane),
      place_(place),
      targets_(targets),
      grid_(grid),
      sm_version_(sm_version),
      steps_left_(kMostSteps) {}

// Nothing from the instruction at `at` on has written it, up to where the thread stopped.
template <class Touches>
bool PastRegisters::is_unchanged(std::uint64_t at, Touches touches) const {
  if (lane_.pc < at || lane_.pc - at > kFarthestInstructions * kSassBytes) return false;
  for (; at < lane_.pc; at += kSassBytes) {
    const std::optional<SassInstruction> instruction = instruction_at(place_, at);
    if (!instruction || touches(writes_of(*instruction, sm_version_))) return false;
  }
  return true;
}

// The last instruction before `before` that wrote it, where straight code leads from there to here.
template <class Touches>
std::optional<std::uint64_t> PastRegisters::maker(std::uint64_t before, Touches touches) const {
  for (std::uint64_t at = before; at > place_.function_start && before - at < kFarthestInstructions * kSassBytes;) {
    at -= kSassBytes;
    const std::optional<SassInstruction> instruction = instruction_at(place_, at);
    if (!instruction) return std::nullopt;
    const SassWrites writes = writes_of(*instruction, sm_version_);
    if (writes.anything) {
      // Who is here did not take this branch.
      if (instruction->operation() == kBranch && is_guarded(*instruction)) continue;
      return std::nullopt;
    }
    if (!touches(writes)) continue;
    if (is_guarded(*instruction) || targets_.any_in(at, before)) return std::nullopt;
    return at;
  }
  return std::nullopt;
}

std::optional<std::uint32_t> PastRegisters::value(std::uint8_t number, std::uint64_t at, unsigned depth) {
  if (number == kZeroRegister) return 0;
  const auto touches = [&](const SassWrites& writes) { return writes.touches_register(number); };
  if (is_unchanged(at, touches)) return word(tables_.registers(warp_, lane_), std::uint64_t{number} * 4);
  return computed(number, at, depth);
}

std::optional<std::uint32_t> PastRegisters::computed(std::uint8_t number, std::uint64_t at, unsigned depth) {
  if (depth >= kDeepest || steps_left_ == 0) return std::nullopt;
  --steps_left_;
  const std::optional<std::uint64_t> made_at =
      maker(at, [&](const SassWrites& writes) { return writes.touches_register(number); });
  if (!made_at) return std::nullopt;
  return evaluate(*instruction_at(place_, *made_at), *made_at, number, depth + 1);
}

std::optional<std::uint32_t> PastRegisters::uniform_value(std::uint8_t number, std::uint64_t at) {
  const auto touches = [&](const SassWrites& writes) { return writes.touches_uniform(number); };
  if (is_unchanged(at, touches)) return word(tables_.uniform_registers(warp_), std::uint64_t{number} * 4);
  const std::optional<std::uint64_t> made_at = maker(at, touches);
  if (!made_at) return std::nullopt;
  const SassInstruction made_by = *instruction_at(place_, *made_at);
  const std::uint32_t first = made_by.bits(16, 8);
  if (made_by.operation() != kUniformConstant || number < first) return std::nullopt;
  return parameter(made_by, number - first);
}

std::optional<std::uint32_t> PastRegisters::evaluate(const SassInstruction& made_by, std::uint64_t at,
                                                     std::uint8_t number, unsigned depth) {
  const std::uint32_t which = number - made_by.bits(16, 8);
  std::optional<std::uint64_t> result;
  switch (made_by.operation()) {
    case kMove:
      if (!has_plain_options(made_by, 0x00000f00, 0)) return std::nullopt;
      return which == 0 ? second_operand(made_by, at, depth) : std::nullopt;
    case kSum: result = sum(made_by, at, depth); break;
    case kProduct: result = product(made_by, at, depth, false); break;
    case kWideProduct: result = product(made_by, at, depth, true); break;
    case kConstant: return parameter(made_by, which);
    case kSpecial: {
      const std::uint32_t source = made_by.bits(72, 8);
      if (source >= 0x21 && source <= 0x23) return lane_.thread_index[source - 0x21];
      if (source >= 0x25 && source <= 0x27) return warp_.block_index[source - 0x25];
      return std::nullopt;
    }
    default: return std::nullopt;
  }
  if (!result || which > 1 || (which == 1 && made_by.operation() != kWideProduct)) return std::nullopt;
  return static_cast<std::uint32_t>(*result >> (32 * which));
}

// IMAD and IMAD.WIDE: a * b + c.
std::optional<std::uint64_t> PastRegisters::product(const SassInstruction& made_by, std::uint64_t at, unsigned depth,
                                                    bool is_wide) {
  const std::uint32_t free = is_wide ? option(73) : option(73) | option(75);
  if (!has_plain_options(made_by, 0x078e0000, free)) return std::nullopt;
  const std::optional<std::uint32_t> a = value(static_cast<std::uint8_t>(made_by.bits(24, 8)), at, depth);
  const std::optional<std::uint32_t> b = second_operand(made_by, at, depth);
  const auto third = static_cast<std::uint8_t>(made_by.bits(64, 8));
  const std::optional<std::uint32_t> c = value(third, at, depth);
  if (!a || !b || !c) return std::nullopt;
  if (!is_wide) return std::uint64_t{*a * *b + negated_if(*c, made_by.bit(75))};
  const std::optional<std::uint32_t> c_high =
      third == kZeroRegister ? std::optional<std::uint32_t>(0) : value(static_cast<std::uint8_t>(third + 1), at, depth);
  if (!c_high) return std::nullopt;
  const std::uint64_t added = std::uint64_t{*c_high} << 32 | *c;
  if (!made_by.bit(73)) return std::uint64_t{*a} * *b + added;
  const std::int64_t times = std::int64_t{static_cast<std::int32_t>(*a)} * static_cast<std::int32_t>(*b);
  return static_cast<std::uint64_t>(times) + added;
}

// IADD3 and IADD3.X: a + b + c, and what an earlier sum carried. With the carry in the upper half.
std::optional<std::uint64_t> PastRegisters::sum(const SassInstruction& made_by, std::uint64_t at, unsigned depth) {
  const bool takes_carry = made_by.bit(74);
  const std::uint32_t carries = option(81) | option(82) | option(83) | option(84) | option(85) | option(86);
  const std::uint32_t taken = option(87) | option(88) | option(89);
  if (takes_carry ? !has_plain_options(made_by, 0x007fe400, taken) : !has_plain_options(made_by, 0x07ffe000, carries))
    return std::nullopt;
  if (made_by.bits(9, 3) != kImmediateForm && made_by.bit(63)) return std::nullopt;  // b negated
  const std::optional<std::uint32_t> a = value(static_cast<std::uint8_t>(made_by.bits(24, 8)), at, depth);
  const std::optional<std::uint32_t> b = second_operand(made_by, at, depth);
  const std::optional<std::uint32_t> c = value(static_cast<std::uint8_t>(made_by.bits(64, 8)), at, depth);
  const std::optional<std::uint64_t> carried =
      takes_carry ? carry(static_cast<std::uint8_t>(made_by.bits(87, 3)), at, depth) : std::optional<std::uint64_t>(0);
  if (!a || !b || !c || !carried) return std::nullopt;
  return std::uint64_t{*a} + *b + *c + *carried;
}

std::optional<std::uint64_t> PastRegisters::carry(std::uint8_t predicate, std::uint64_t at, unsigned depth) {
  if (predicate == kTruePredicate || depth >= kDeepest) return std::nullopt;
  const std::optional<std::uint64_t> made_at =
      maker(at, [&](const SassWrites& writes) { return writes.touches_predicate(predicate); });
  if (!made_at) return std::nullopt;
  const SassInstruction made_by = *instruction_at(place_, *made_at);
  // One carry alone: a sum of two.
  if (made_by.operation() != kSum || made_by.bit(74) || made_by.bits(81, 3) != predicate ||
      made_by.bits(84, 3) != kTruePredicate || made_by.bits(64, 8) != kZeroRegister)
    return std::nullopt;
  const std::optional<std::uint64_t> total = sum(made_by, *made_at, depth + 1);
  return total ? std::optional(*total >> 32) : std::nullopt;
}

std::optional<std::uint32_t> PastRegisters::second_operand(const SassInstruction& instruction, std::uint64_t at,
                                                           unsigned depth) {
  switch (instruction.bits(9, 3)) {
    case kRegisterForm:
      return instruction.bits(40, 24) == 0 ? value(static_cast<std::uint8_t>(instruction.bits(32, 8)), at, depth)
                                           : std::nullopt;
    case kImmediateForm: return instruction.bits(32, 32);
    case kUniformForm: {
      if (!instruction.bit(91) || instruction.bits(40, 24) != 0) return std::nullopt;
      const std::uint32_t number = instruction.bits(32, 8);
      if (number == (sm_version_ >= 100 ? 255u : 63u)) return 0;
      return uniform_value(static_cast<std::uint8_t>(number), at);
    }
    default: return std::nullopt;
  }
}

// LDC and ULDC from where the launch put the kernel's parameters, at an address that is in the instruction itself.
std::optional<std::uint32_t> PastRegisters::parameter(const SassInstruction& load, std::uint32_t which) const {
  const std::uint32_t width = load.bits(73, 3);
  const bool is_indexed = load.operation() == kConstant && load.bits(24, 8) != kZeroRegister;
  if (grid_ == nullptr || is_indexed || load.bits(54, 5) != 0 || (width != 4 && width != 5) ||
      which >= (width == 5 ? 2u : 1u))
    return std::nullopt;
  const std::uint64_t offset = load.bits(38, 16) + std::uint64_t{which} * 4;
  if (offset < grid_->parameters_offset) return std::nullopt;
  return word(grid_->parameters, offset - grid_->parameters_offset);
}

}  // namespace faultline
