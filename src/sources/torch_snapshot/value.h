// Value: one object of a snapshot file, in eight bytes: a tag and a payload.
//
// Small integers stand in the value itself; strings, floats and large integers are indices into side tables; lists, dicts and tuples are
// nodes of the ObjectMachine. A value is copied freely, so a frame that ten thousand stacks share stays one frame.
#pragma once

#include <cstdint>

namespace faultline::torch_snapshot {

enum class Tag : std::uint8_t { kNone, kBool, kInt, kBigInt, kFloat, kString, kNode };

struct Value {
  std::uint64_t bits = 0;

  static constexpr int kTagBits = 4;
  static constexpr std::int64_t kMaxInline = (std::int64_t{1} << 59) - 1;

  static constexpr Value make(Tag tag, std::uint64_t payload) {
    return {payload << kTagBits | static_cast<std::uint64_t>(tag)};
  }
  static constexpr Value integer(std::int64_t number) { return make(Tag::kInt, static_cast<std::uint64_t>(number)); }
  static constexpr bool fits_inline(std::int64_t number) { return -kMaxInline <= number && number <= kMaxInline; }

  constexpr Tag tag() const { return static_cast<Tag>(bits & ((1u << kTagBits) - 1)); }
  constexpr std::uint64_t index() const { return bits >> kTagBits; }
  constexpr std::int64_t integer() const { return static_cast<std::int64_t>(bits) >> kTagBits; }
  friend constexpr bool operator==(Value, Value) = default;
};
static_assert(sizeof(Value) == 8);

}  // namespace faultline::torch_snapshot
