#include "sources/core_dump/sass.h"

namespace faultline {
namespace {

constexpr std::uint32_t kLongestUniform = 4;  // registers that one uniform operation writes at most, as far as we know

// Operations by what they leave behind, as seen in the disassembly of a few hundred thousand instructions.
bool writes_no_register(std::uint32_t operation) {
  switch (operation) {
    case 0x00b:
    case 0x00c:
    case 0x01c:
    case 0x02a:
    case 0x08c:  // FSETP, ISETP, PLOP3, DSETP, UISETP: predicates
    case 0x118:
    case 0x11a:
    case 0x11d:
    case 0x145:
    case 0x146:  // NOP, DEPBAR, BAR, BSSY, YIELD
    case 0x14d:  // EXIT: who goes on did not take it
    case 0x17f:
    case 0x185:
    case 0x186:
    case 0x187:
    case 0x188:  // stores
    case 0x18e:
    case 0x1a6:  // RED
    case 0x18f:
    case 0x192:
    case 0x1ab:
    case 0x1ae:
    case 0x1af:  // CCTL, MEMBAR, ERRBAR, LDGSTS, LDGDEPBAR
      return true;
    default: return false;
  }
}

std::uint8_t loaded_registers(std::uint32_t width) { return width == 6 ? 4 : width == 5 ? 2 : 1; }

// 0: not known to write registers of a thread.
std::uint8_t written_registers(const SassInstruction& instruction, std::uint32_t sm_version) {
  // Blackwell has pairs where its ancestors had single registers.
  const std::uint8_t single = sm_version >= 100 ? 2 : 1;
  switch (instruction.operation()) {
    case 0x002:
    case 0x003:
    case 0x007:
    case 0x008:
    case 0x010:
    case 0x011:
    case 0x012:
    case 0x016:
    case 0x019:  // MOV P2R SEL FSEL IADD3 LEA LOP3 PRMT SHF
    case 0x020:
    case 0x021:
    case 0x023:
    case 0x024:
    case 0x027:
    case 0x030:
    case 0x031:  // FMUL FADD FFMA IMAD IMAD.HI HADD2 HFMA2
    case 0x036:
    case 0x03e:
    case 0x045:
    case 0x100:
    case 0x108:
    case 0x119:  // VIADD F2FP I2FP FLO MUFU S2R
      return single;
    case 0x005:
    case 0x025:
    case 0x028:
    case 0x029:
    case 0x02b:
    case 0x035:  // CS2R IMAD.WIDE DMUL DADD DFMA HFMA2.MMA
    case 0x104:
    case 0x105:
    case 0x106:
    case 0x110:
    case 0x111:
    case 0x112:
    case 0x113:
    case 0x14e:  // conversions, FRND, LEPC
      return 2;
    case 0x180:
    case 0x181:
    case 0x182:
    case 0x183:
    case 0x184:  // LD LDG LDC LDL LDS
      return loaded_registers(instruction.bits(73, 3));
    case 0x18a:
    case 0x18b:
    case 0x18c:
    case 0x18d:
    case 0x1a2:
    case 0x1a3:
    case 0x1a8:
    case 0x1a9: return 4;  // atomics
    default: return 0;
  }
}

bool is_uniform(std::uint32_t operation) {
  switch (operation) {
    case 0x082:
    case 0x087:
    case 0x090:
    case 0x091:
    case 0x092:
    case 0x096:
    case 0x099:
    case 0x0a4:
    case 0x0a5:  // UMOV … UIMAD
    case 0x0b9:
    case 0x0ca:
    case 0x1ac:
    case 0x1c3:  // ULDC R2UR LDCU S2UR
      return true;
    default: return false;
  }
}

// Up to two fields name predicates that are written: what a comparison found, what a sum carried.
std::uint8_t written_predicates(const SassInstruction& instruction) {
  const std::uint32_t first = 1u << instruction.bits(81, 3);
  const std::uint32_t second = 1u << instruction.bits(84, 3);
  std::uint32_t mask = 0;
  switch (instruction.operation()) {
    case 0x00b:
    case 0x00c:
    case 0x01c:
    case 0x02a:
    case 0x010: mask = first | second; break;  // FSETP ISETP PLOP3 DSETP IADD3
    case 0x011:
    case 0x012:
    case 0x024:
    case 0x025:
    case 0x027:  // LEA LOP3 IMAD
    case 0x17e:
    case 0x180:
    case 0x181:
    case 0x18a:
    case 0x18b:
    case 0x18d:
    case 0x1a2:
    case 0x1a3:
    case 0x1a8:
    case 0x1a9: mask = first; break;  // LD LDG, atomics
    default: break;
  }
  return static_cast<std::uint8_t>(mask & ~(1u << kTruePredicate));
}

}  // namespace

SassWrites writes_of(const SassInstruction& instruction, std::uint32_t sm_version) {
  SassWrites writes;
  const std::uint32_t operation = instruction.operation();
  writes.predicates = written_predicates(instruction);
  if (writes_no_register(operation)) return writes;
  const auto target = static_cast<std::uint8_t>(instruction.bits(16, 8));
  if (is_uniform(operation)) {
    writes.first_uniform = target;
    writes.uniform_count = kLongestUniform;
    return writes;
  }
  writes.register_count = written_registers(instruction, sm_version);
  if (writes.register_count == 0) {
    writes.anything = true;
  } else if (target != kZeroRegister) {
    writes.first_register = target;
  } else {
    writes.register_count = 0;
  }
  return writes;
}

}  // namespace faultline
