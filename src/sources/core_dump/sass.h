// The memory instructions of NVIDIA GPUs from Volta to Blackwell (sm_70 to sm_120), decoded: what is accessed, how wide, and which registers make the
// address. An instruction has 128 bits on all of them; what moved between generations is named in sass.cpp.
//
// The layout is not documented. It was found by changing bits of instructions and reading NVIDIA's disassembler; sass_test.cpp holds instructions of every
// generation with the disassembler's text. What does not decode is not guessed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace faultline {

struct SassInstruction {
  std::uint64_t low = 0;
  std::uint64_t high = 0;

  // `count` bits from bit `first` on, both of them in 0..128, never across the middle.
  std::uint32_t bits(unsigned first, unsigned count) const {
    const std::uint64_t half = first < 64 ? low >> first : high >> (first - 64);
    return static_cast<std::uint32_t>(half & ((std::uint64_t{1} << count) - 1));
  }
  bool bit(unsigned place) const { return bits(place, 1) != 0; }
  std::uint32_t operation() const { return bits(0, 9); }  // without the form of its operands
};

inline constexpr std::uint32_t kSassBytes = 16;
inline constexpr std::uint8_t kZeroRegister = 255;  // RZ
inline constexpr std::uint8_t kTruePredicate = 7;   // PT

enum class MemorySpace : std::uint8_t { kGlobal, kGeneric, kShared, kLocal };

struct MemoryInstruction {
  // "LDG.E.64 R2, desc[UR4][R8.64+0x10]": operation, width, operands; not the cache and ordering hints
  std::string text;
  MemorySpace space = MemorySpace::kGlobal;
  std::uint32_t size_bytes = 0;  // that each thread accesses
  bool is_load = false;          // an atomic operation is both
  bool is_store = false;
  std::uint8_t guard = kTruePredicate;
  bool guard_is_negated = false;
  // address = register (pair) << shift + uniform register (pair) + offset
  std::uint8_t address_register = kZeroRegister;
  bool address_is_pair = false;
  std::uint8_t shift = 0;
  std::optional<std::uint8_t> uniform_register;
  std::int64_t offset = 0;
};

// sm_version: 75, 90, 120.
std::optional<MemoryInstruction> decode_memory_instruction(const SassInstruction& instruction,
                                                           std::uint32_t sm_version);

// BPT.TRAP, what __trap() and failed checks of a compiler become.
inline bool is_trap(const SassInstruction& instruction) {
  return instruction.bits(0, 12) == 0x95c && instruction.bits(84, 3) == 3;
}

// What an instruction may have overwritten by the time the next one runs. Registers of operations that are not known count as overwritten, all of them.
struct SassWrites {
  bool anything = false;                        // unknown, or the next instruction may not be the one behind it
  std::uint8_t first_register = kZeroRegister;  // of a GPU thread
  std::uint8_t register_count = 0;
  std::uint8_t first_uniform = 0;
  std::uint8_t uniform_count = 0;
  std::uint8_t predicates = 0;  // a bit for each

  bool touches_register(std::uint8_t one) const {
    return anything || (one != kZeroRegister && one >= first_register && one - first_register < register_count);
  }
  bool touches_uniform(std::uint8_t one) const {
    return anything || (one >= first_uniform && one - first_uniform < uniform_count);
  }
  bool touches_predicate(std::uint8_t one) const {
    return anything || (one != kTruePredicate && (predicates >> one & 1) != 0);
  }
};
SassWrites writes_of(const SassInstruction& instruction, std::uint32_t sm_version);

}  // namespace faultline
