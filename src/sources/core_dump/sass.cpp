#include "sources/core_dump/sass.h"

#include <fmt/format.h>

#include <array>
#include <string_view>

namespace faultline {
namespace {

enum class Shape : std::uint8_t {
  kLoad,
  kStore,
  kAtomic,
  kAtomicFloat,
  kCompare,
  kReduce,
  kReduceFloat,
  kCopy,
  kWideLoad,
  kWideStore
};

struct Operation {
  std::uint16_t number;
  std::string_view name;
  Shape shape;
  MemorySpace space;
};

constexpr std::array kOperations = {
    Operation{0x17e, "LDG", Shape::kWideLoad, MemorySpace::kGlobal},
    Operation{0x17f, "STG", Shape::kWideStore, MemorySpace::kGlobal},
    Operation{0x180, "LD", Shape::kLoad, MemorySpace::kGeneric},
    Operation{0x181, "LDG", Shape::kLoad, MemorySpace::kGlobal},
    Operation{0x183, "LDL", Shape::kLoad, MemorySpace::kLocal},
    Operation{0x184, "LDS", Shape::kLoad, MemorySpace::kShared},
    Operation{0x185, "ST", Shape::kStore, MemorySpace::kGeneric},
    Operation{0x186, "STG", Shape::kStore, MemorySpace::kGlobal},
    Operation{0x187, "STL", Shape::kStore, MemorySpace::kLocal},
    Operation{0x188, "STS", Shape::kStore, MemorySpace::kShared},
    Operation{0x18a, "ATOM", Shape::kAtomic, MemorySpace::kGeneric},
    Operation{0x18b, "ATOM", Shape::kCompare, MemorySpace::kGeneric},
    Operation{0x18c, "ATOMS", Shape::kAtomic, MemorySpace::kShared},
    Operation{0x18d, "ATOMS", Shape::kCompare, MemorySpace::kShared},
    Operation{0x18e, "RED", Shape::kReduce, MemorySpace::kGlobal},
    Operation{0x1a2, "ATOM", Shape::kAtomicFloat, MemorySpace::kGeneric},
    Operation{0x1a3, "ATOMG", Shape::kAtomicFloat, MemorySpace::kGlobal},
    Operation{0x1a6, "RED", Shape::kReduceFloat, MemorySpace::kGlobal},
    Operation{0x1a8, "ATOMG", Shape::kAtomic, MemorySpace::kGlobal},
    Operation{0x1a9, "ATOMG", Shape::kCompare, MemorySpace::kGlobal},
    Operation{0x1ae, "LDGSTS", Shape::kCopy, MemorySpace::kGlobal},
};

struct Width {
  std::string_view suffix;
  std::uint32_t size_bytes;  // 0: there is no such width
};
constexpr std::array<Width, 8> kWidths = {
    {{".U8", 1}, {".S8", 1}, {".U16", 2}, {".S16", 2}, {"", 4}, {".64", 8}, {".128", 16}, {}}};
constexpr std::array<Width, 8> kAtomicTypesBefore90 = {
    {{"", 4}, {".S32", 4}, {".64", 8}, {".F32", 4}, {".F16x2", 4}, {".S64", 8}, {".F64", 8}, {}}};
constexpr std::array<Width, 8> kAtomicTypes = {
    {{"", 4}, {".S32", 4}, {".64", 8}, {".S64", 8}, {".128", 16}, {}, {}, {}}};
constexpr std::array<Width, 16> kFloatTypes = {{{".F16x2", 4},
                                                {".F16x4", 8},
                                                {".F16x8", 16},
                                                {".BF16x2", 4},
                                                {".BF16x4", 8},
                                                {".BF16x8", 16},
                                                {},
                                                {},
                                                {},
                                                {".F32", 4},
                                                {".F32x2", 8},
                                                {".F32x4", 16},
                                                {".F32", 4},
                                                {".F32x2", 8},
                                                {".F32x4", 16},
                                                {".F64", 8}}};
constexpr std::array<Width, 4> kCopyWidths = {{{"", 4}, {".64", 8}, {".128", 16}, {}}};
constexpr std::array<std::string_view, 16> kAtomicNames = {
    ".ADD", ".MIN", ".MAX", ".INC", ".DEC", ".AND", ".OR", ".XOR", ".EXCH", {}, {}, {}, {}, {}, {}, {}};

constexpr unsigned kFormRegisters = 1;    // 0x3xx: registers alone
constexpr unsigned kFormCompareInto = 2;  // 0x5xx: a compare-and-swap that yields a predicate
constexpr unsigned kFormUniform = 4;      // 0x9xx: with a uniform register
constexpr unsigned kFormBoth = 7;         // 0xfxx

std::string register_name(std::uint32_t number) { return number == kZeroRegister ? "RZ" : fmt::format("R{}", number); }
std::string predicate_name(std::uint32_t number) {
  return number == kTruePredicate ? "PT" : fmt::format("P{}", number);
}

std::int32_t sign_extended(std::uint32_t value, unsigned bits) {
  const std::uint32_t sign = std::uint32_t{1} << (bits - 1);
  return static_cast<std::int32_t>((value ^ sign) - sign);
}

class Decoder {
 public:
  Decoder(const SassInstruction& instruction, std::uint32_t sm_version) : bits_(instruction), sm_(sm_version) {}

  std::optional<MemoryInstruction> decode() {
    for (const Operation& operation : kOperations) {
      if (operation.number != bits_.operation()) continue;
      operation_ = &operation;
      return decode_operation() ? std::optional(std::move(result_)) : std::nullopt;
    }
    return std::nullopt;
  }

 private:
  bool is_blackwell() const { return sm_ >= 100; }
  bool is_shared_or_local() const {
    return operation_->space == MemorySpace::kShared || operation_->space == MemorySpace::kLocal;
  }
  unsigned form() const { return bits_.bits(9, 3); }
  // Before Ampere, generic accesses have no uniform register and an offset of 32 bits in its place.
  bool has_long_offset() const { return sm_ < 80 && operation_->space == MemorySpace::kGeneric; }

  bool decode_operation() {
    if (sm_ < 70) return false;
    result_.space = operation_->space;
    result_.guard = static_cast<std::uint8_t>(bits_.bits(12, 3));
    result_.guard_is_negated = bits_.bit(15);
    result_.address_register = static_cast<std::uint8_t>(bits_.bits(24, 8));
    switch (operation_->shape) {
      case Shape::kLoad: return decode_load();
      case Shape::kStore: return decode_store();
      case Shape::kWideLoad:
      case Shape::kWideStore: return decode_wide();
      case Shape::kCopy: return decode_copy();
      default: return decode_atomic();
    }
  }

  // Bit 91 says that a uniform register takes part; for global memory it is either a descriptor, which adds nothing to the address, or a base.
  bool address_of_global(unsigned uniform_at, bool is_described, bool is_pair) {
    result_.address_is_pair = is_pair;
    if (form() == kFormRegisters || !bits_.bit(91)) {
      result_.address_is_pair = bits_.bit(72);
      plain_pair_ = true;
      return true;
    }
    take_uniform(uniform_at, is_described);
    return true;
  }

  bool address_of_window(unsigned uniform_at) {
    if (operation_->space == MemorySpace::kShared) {
      constexpr std::array<std::uint8_t, 4> kShifts = {0, 2, 3, 4};
      result_.shift = kShifts[bits_.bits(78, 2)];
    }
    if (form() == kFormRegisters || !bits_.bit(91)) return true;
    take_uniform(uniform_at, operation_->space == MemorySpace::kLocal && bits_.bit(76));
    return true;
  }

  void take_uniform(unsigned uniform_at, bool is_descriptor) {
    const std::uint32_t zero = is_blackwell() ? 255 : 63;
    const std::uint32_t number = bits_.bits(uniform_at, is_blackwell() ? 8 : 6);
    std::string& name = is_descriptor ? descriptor_name_ : uniform_name_;
    name = number == zero ? "URZ" : fmt::format("UR{}", number);
    if (!is_descriptor && number != zero) result_.uniform_register = static_cast<std::uint8_t>(number);
  }

  bool set_width(const Width& width) {
    width_ = width;
    result_.size_bytes = width.size_bytes;
    return width.size_bytes != 0;
  }

  std::string extended() const { return is_shared_or_local() || !bits_.bit(72) ? "" : ".E"; }

  bool decode_load() {
    if (form() != kFormRegisters && form() != kFormUniform) return false;
    // a barrier that shares the number
    if (operation_->number == 0x181 && form() == kFormUniform && !bits_.bit(91)) return false;
    result_.is_load = true;
    if (!set_width(kWidths[bits_.bits(73, 3)])) return false;
    if (!(is_shared_or_local() ? address_of_window(32)
                               : address_of_global(32, bits_.bit(76) && sm_ >= 80, bits_.bit(90))))
      return false;
    set_offset(has_long_offset() ? 32 : 40, has_long_offset() ? 32 : 24);
    finish(extended() + std::string(width_.suffix), register_name(bits_.bits(16, 8)) + ", " + address_text());
    return true;
  }

  bool decode_store() {
    if (form() != kFormRegisters && form() != kFormUniform) return false;
    result_.is_store = true;
    if (!set_width(kWidths[bits_.bits(73, 3)])) return false;
    if (!(is_shared_or_local() ? address_of_window(64)
                               : address_of_global(64, bits_.bit(76) && sm_ >= 80, bits_.bit(90))))
      return false;
    set_offset(has_long_offset() ? 32 : 40, has_long_offset() ? 32 : 24);
    finish(extended() + std::string(width_.suffix),
           address_text() + ", " + register_name(bits_.bits(has_long_offset() ? 64 : 32, 8)));
    return true;
  }

  // 256 bits at once, from Blackwell on; the offset counts in units of 32 bytes.
  bool decode_wide() {
    if (!is_blackwell() || form() != kFormUniform || !bits_.bit(91)) return false;
    const bool is_load = operation_->shape == Shape::kWideLoad;
    (is_load ? result_.is_load : result_.is_store) = true;
    set_width({".256", 32});
    result_.offset = is_load ? sign_extended(bits_.bits(40, 17), 17) * 32 : sign_extended(bits_.bits(40, 19), 19) * 32;
    if (!address_of_global(is_load ? 32 : 64, bits_.bit(76), true)) return false;
    const std::string first = register_name(bits_.bits(is_load ? 64 : 32, 8));
    const std::string second = register_name(bits_.bits(16, 8));
    finish(".E.256",
           is_load ? first + ", " + second + ", " + address_text() : address_text() + ", " + first + ", " + second);
    return true;
  }

  // Global to shared memory without passing through registers; what can fault is the global side.
  bool decode_copy() {
    if (form() != kFormBoth || !bits_.bit(91)) return false;
    result_.is_load = true;
    result_.offset = sign_extended(bits_.bits(32, 12), 12);
    if (!set_width(is_blackwell() ? kCopyWidths[bits_.bits(74, 2)] : kWidths[bits_.bits(73, 3)]) ||
        width_.size_bytes < 4)
      return false;
    if (!address_of_global(64, bits_.bit(76), bits_.bit(is_blackwell() ? 83 : 70))) return false;
    const std::int32_t shared_offset = sign_extended(bits_.bits(44, 20), 20);
    finish(".E" + std::string(width_.suffix),
           "[" + register_name(bits_.bits(16, 8)) + offset_text(shared_offset) + "], " + address_text());
    return true;
  }

  bool decode_atomic() {
    const Shape shape = operation_->shape;
    const bool is_float = shape == Shape::kAtomicFloat || shape == Shape::kReduceFloat;
    const bool is_reduction = shape == Shape::kReduce || shape == Shape::kReduceFloat;
    const bool is_shared = operation_->space == MemorySpace::kShared;
    result_.is_store = true;
    result_.is_load = !is_reduction;
    if (form() == kFormBoth) return is_shared && shape == Shape::kAtomic && decode_count();
    if (form() != kFormRegisters && form() != kFormUniform && !(form() == kFormCompareInto && shape == Shape::kCompare))
      return false;
    // In Blackwell's two-operand forms the highest bit of the offset says how wide the address register is.
    const bool has_width_bit =
        is_blackwell() && !is_shared && (shape == Shape::kAtomic || shape == Shape::kAtomicFloat);
    if (!set_width(is_float   ? kFloatTypes[bits_.bits(73, 4)]
                   : sm_ < 90 ? kAtomicTypesBefore90[bits_.bits(73, 3)]
                              : kAtomicTypes[bits_.bits(73, 3)]))
      return false;
    if (is_shared) {
      if (!address_of_window(shape == Shape::kAtomic && form() == kFormUniform ? 64 : 32)) return false;
    } else if (shape == Shape::kCompare) {
      result_.address_is_pair = bits_.bit(72);
      plain_pair_ = true;
    } else {
      const unsigned descriptor_bit = !is_blackwell() ? 71 : is_reduction ? 81 : is_float ? 90 : 76;
      const bool is_pair = is_reduction ? bits_.bit(90) : has_width_bit ? bits_.bit(63) : bits_.bit(70);
      if (!address_of_global(64, bits_.bit(descriptor_bit), is_pair)) return false;
    }
    set_offset(40, has_width_bit ? 23 : 24);
    const std::string name = shape == Shape::kCompare
                                 ? compare_name()
                                 : std::string(kAtomicNames[bits_.bits(87, is_float || is_reduction ? 3 : 4)]);
    if (name.empty()) return false;
    std::string operands = is_reduction ? "" : destination_text();
    operands += address_text() + ", " + register_name(bits_.bits(32, 8));
    if (shape == Shape::kCompare) operands += ", " + register_name(bits_.bits(64, 8));
    finish(extended() + name + std::string(width_.suffix), operands);
    return true;
  }

  // Shared memory has a counter of its own kind: how many threads came by.
  bool decode_count() {
    result_.size_bytes = 4;
    if (!address_of_window(64)) return false;
    set_offset(40, 24);
    finish(".POPC.INC.32", register_name(bits_.bits(16, 8)) + ", " + address_text());
    return true;
  }

  std::string compare_name() const {
    const std::uint32_t kind = bits_.bits(87, 2);
    return kind == 0 ? ".CAS" : kind == 2 ? ".CAST" : kind == 3 ? ".CAST.SPIN" : "";
  }

  std::string destination_text() const {
    if (form() == kFormCompareInto) return predicate_name(bits_.bits(81, 3)) + ", ";
    const std::string destination = register_name(bits_.bits(16, 8)) + ", ";
    return operation_->space == MemorySpace::kShared ? destination
                                                     : predicate_name(bits_.bits(81, 3)) + ", " + destination;
  }

  static std::string offset_text(std::int64_t offset) {
    if (offset == 0) return "";
    return offset < 0 ? fmt::format("+-0x{:x}", -offset) : fmt::format("+0x{:x}", offset);
  }

  std::string address_text() const {
    std::string inside;
    const bool is_zero = result_.address_register == kZeroRegister;
    if (!is_zero || uniform_name_.empty()) {
      inside = register_name(result_.address_register);
      if (result_.shift != 0 && !is_zero) inside += fmt::format(".X{}", 1 << result_.shift);
      if (!is_shared_or_local() && !plain_pair_) inside += result_.address_is_pair ? ".64" : ".U32";
    }
    if (!uniform_name_.empty()) inside += (inside.empty() ? "" : "+") + uniform_name_;
    std::string offset = offset_text(result_.offset);
    if (is_absolute() && !offset.empty()) {
      inside.clear();
      offset.erase(0, 1);
    }
    const std::string body = "[" + inside + offset + "]";
    return !descriptor_name_.empty() && sm_ >= 90 ? "desc[" + descriptor_name_ + "]" + body : body;
  }
  // An offset from nothing is the address itself, and has no sign.
  bool is_absolute() const {
    return result_.address_register == kZeroRegister && uniform_name_.empty() && (plain_pair_ || is_shared_or_local());
  }

  void set_offset(unsigned first, unsigned count) {
    result_.offset = is_absolute() ? std::int64_t{bits_.bits(first, count)}
                                   : std::int64_t{sign_extended(bits_.bits(first, count), count)};
  }

  void finish(const std::string& suffixes, const std::string& operands) {
    std::string guard;
    if (result_.guard != kTruePredicate || result_.guard_is_negated)
      guard = fmt::format("@{}{} ", result_.guard_is_negated ? "!" : "", predicate_name(result_.guard));
    std::string name(operation_->name);
    if (name == "RED" && sm_ >= 90) name = "REDG";
    result_.text = guard + name + suffixes + " " + operands;
  }

  const SassInstruction& bits_;
  std::uint32_t sm_;
  const Operation* operation_ = nullptr;
  Width width_;
  std::string descriptor_name_;
  std::string uniform_name_;
  bool plain_pair_ = false;  // written "[R2]", whether it is one register or two
  MemoryInstruction result_;
};

}  // namespace

std::optional<MemoryInstruction> decode_memory_instruction(const SassInstruction& instruction,
                                                           std::uint32_t sm_version) {
  return Decoder(instruction, sm_version).decode();
}

}  // namespace faultline
