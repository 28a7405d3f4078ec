#include "capture/frame_rules.h"

#include <array>
#include <cstddef>
#include <cstring>
#include <vector>

#include "base/byte_cursor.h"

namespace faultline::capture {

namespace {

struct CodeBases {
  void* text;
  void* data;
  void* function;
};
// Part of every C++ runtime, but of no header that is installed.
extern "C" const void* _Unwind_Find_FDE(void* address, CodeBases* bases);  // NOLINT(bugprone-reserved-identifier)

constexpr std::uint64_t kFramePointerRegister = 6;
constexpr std::uint64_t kStackPointerRegister = 7;
constexpr std::uint64_t kReturnAddressRegister = 16;

// A part with its length before it.
ByteCursor block(ByteCursor& from) { return ByteCursor(from.take(from.uleb())); }

std::size_t encoded_size(std::uint8_t encoding) {
  constexpr std::array<std::size_t, 5> kSizes{8, 0, 2, 4, 8};
  return (encoding & 7) < kSizes.size() ? kSizes[encoding & 7] : 0;
}

// Where a register's value in the caller is.
struct Place {
  enum class Kind : std::uint8_t { kSame, kAtFrame, kAtFramePointer, kUndefined, kOther };
  Kind kind = Kind::kSame;
  std::int64_t offset = 0;
};

struct State {
  FrameRule::Kind frame = FrameRule::Kind::kNone;
  std::int64_t offset = 0;
  Place frame_pointer, return_address;
  Place unused;

  Place& of(std::uint64_t number) {
    return number == kFramePointerRegister ? frame_pointer : number == kReturnAddressRegister ? return_address : unused;
  }
  void set_register(std::uint64_t number) {
    frame = number == kStackPointerRegister   ? FrameRule::Kind::kStackPointer
            : number == kFramePointerRegister ? FrameRule::Kind::kFramePointer
                                              : FrameRule::Kind::kNone;
  }
};

// rbp + offset, loaded from or not, and nothing else.
bool is_near_frame_pointer(ByteCursor expression, std::int64_t& offset, bool then_load) {
  constexpr std::uint8_t kNearFramePointer = 0x76, kLoad = 0x06;
  if (expression.u8() != kNearFramePointer) return false;
  offset = expression.sleb();
  if (then_load && (expression.u8() != kLoad)) return false;
  return expression.ok() && expression.remaining() == 0;
}

class Program {
 public:
  Program(std::uint64_t code_unit, std::int64_t data_unit) : code_unit_(code_unit), data_unit_(data_unit) {}

  // Runs until past `target` bytes into the function. False: it says something this cannot follow.
  bool run(ByteCursor code, std::uint64_t target) {
    std::uint64_t location = 0;
    while (code.remaining() != 0) {
      const std::uint8_t instruction = code.u8();
      const std::uint64_t low = instruction & 0x3f;
      switch (instruction >> 6) {
        case 1: location += low * code_unit_; break;
        case 2: state.of(low) = at_frame(static_cast<std::int64_t>(code.uleb())); break;
        case 3: state.of(low) = initial_.of(low); break;
        default:
          if (low >= 2 && low <= 4) {
            location += code_unit_ * (low == 2 ? code.u8() : low == 3 ? code.u16() : code.u32());
          } else if (!extended(low, code)) {
            return false;
          }
      }
      if (location > target) break;
    }
    return code.ok();
  }
  void begin_function() { initial_ = state; }

  State state;

 private:
  Place at_frame(std::int64_t units) const { return {Place::Kind::kAtFrame, units * data_unit_}; }

  bool extended(std::uint64_t instruction, ByteCursor& code) {
    std::uint64_t number = 0;
    switch (instruction) {
      case 0x00: return true;  // nop
      case 0x05:
        number = code.uleb();
        state.of(number) = at_frame(static_cast<std::int64_t>(code.uleb()));
        return true;
      case 0x06:
        number = code.uleb();
        state.of(number) = initial_.of(number);
        return true;
      case 0x07: state.of(code.uleb()) = {Place::Kind::kUndefined, 0}; return true;
      case 0x08: state.of(code.uleb()) = {}; return true;
      case 0x09:
        state.of(code.uleb()) = {Place::Kind::kOther, 0};
        code.uleb();
        return true;
      case 0x0a: remembered_.push_back(state); return true;
      case 0x0b:
        if (remembered_.empty()) return false;
        state = remembered_.back();
        remembered_.pop_back();
        return true;
      case 0x0c:
        state.set_register(code.uleb());
        state.offset = static_cast<std::int64_t>(code.uleb());
        return true;
      case 0x0d: state.set_register(code.uleb()); return true;
      case 0x0e: state.offset = static_cast<std::int64_t>(code.uleb()); return true;
      case 0x0f:
        state.frame = is_near_frame_pointer(block(code), state.offset, true) ? FrameRule::Kind::kSavedPointer
                                                                             : FrameRule::Kind::kNone;
        return true;
      case 0x10: {
        Place& place = state.of(code.uleb());
        place.kind = is_near_frame_pointer(block(code), place.offset, false) ? Place::Kind::kAtFramePointer
                                                                             : Place::Kind::kOther;
        return true;
      }
      case 0x11:
        number = code.uleb();
        state.of(number) = at_frame(code.sleb());
        return true;
      case 0x12:
        state.set_register(code.uleb());
        state.offset = code.sleb() * data_unit_;
        return true;
      case 0x13: state.offset = code.sleb() * data_unit_; return true;
      case 0x16:
        state.of(code.uleb()) = {Place::Kind::kOther, 0};
        block(code);
        return true;
      case 0x2e: code.uleb(); return true;  // size of arguments: of no use here
      default: return false;
    }
  }

  std::uint64_t code_unit_;
  std::int64_t data_unit_;
  State initial_;
  std::vector<State> remembered_;
};

FrameRule rule_of(const State& state) {
  FrameRule rule;
  if (state.return_address.kind == Place::Kind::kUndefined) {
    rule.kind = FrameRule::Kind::kEnd;
    return rule;
  }
  if (state.return_address.kind != Place::Kind::kAtFrame || state.return_address.offset != -8) return rule;
  switch (state.frame_pointer.kind) {
    case Place::Kind::kSame: rule.frame_pointer = FrameRule::FramePointer::kKept; break;
    case Place::Kind::kAtFrame: rule.frame_pointer = FrameRule::FramePointer::kSaved; break;
    case Place::Kind::kAtFramePointer: rule.frame_pointer = FrameRule::FramePointer::kSavedNearby; break;
    default: return rule;
  }
  rule.kind = state.frame;
  rule.offset = static_cast<std::int32_t>(state.offset);
  rule.frame_pointer_offset = static_cast<std::int32_t>(state.frame_pointer.offset);
  return rule;
}

// A record of .eh_frame: its length, then its bytes. Empty: one of the rare long form.
Bytes record_at(const std::uint8_t* at) {
  std::uint32_t bytes = 0;
  std::memcpy(&bytes, at, sizeof bytes);
  return bytes == 0xffffffff ? Bytes() : Bytes(at + 4, bytes);
}

}  // namespace

FrameRule find_frame_rule(std::uintptr_t return_address) {
  CodeBases bases{};
  const auto* description =
      static_cast<const std::uint8_t*>(_Unwind_Find_FDE(reinterpret_cast<void*>(return_address - 1), &bases));
  if (description == nullptr) return {};
  const auto function = record_at(description);
  if (function.empty()) return {};
  std::int32_t back = 0;
  std::memcpy(&back, function.data(), sizeof back);
  const auto common = record_at(function.data() - back);
  if (common.empty()) return {};

  ByteCursor header(common, 4);
  const std::uint8_t version = header.u8();
  const std::string_view letters = header.text();
  if ((version != 1 && version != 3) || !letters.starts_with('z')) return {};
  const std::uint64_t code_unit = header.uleb();
  const std::int64_t data_unit = header.sleb();
  if ((version == 1 ? header.u8() : header.uleb()) != kReturnAddressRegister) return {};
  ByteCursor extras = block(header);
  std::uint8_t address_encoding = 0;
  for (const char letter : letters.substr(1)) {
    if (letter == 'R') {
      address_encoding = extras.u8();
    } else if (letter == 'L') {
      extras.skip(1);
    } else if (letter == 'P') {
      const std::uint8_t encoding = extras.u8();
      if (encoded_size(encoding) == 0) return {};
      extras.skip(encoded_size(encoding));
    } else {
      return {};  // a signal's frame among them
    }
  }

  Program program(code_unit, data_unit);
  if (!program.run(header, 0)) return {};
  program.begin_function();
  ByteCursor code(function, 4);
  if (encoded_size(address_encoding) == 0) return {};
  code.skip(2 * encoded_size(address_encoding));
  block(code);
  if (!program.run(code, return_address - 1 - reinterpret_cast<std::uintptr_t>(bases.function))) return {};
  return rule_of(program.state);
}

}  // namespace faultline::capture
