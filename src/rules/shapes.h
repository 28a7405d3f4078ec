// Shapes, and tensors as the trace writes them in text: what the rules about tensors have in common.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace faultline {

using Shape = std::vector<std::int64_t>;

// One tensor that an operation was given.
struct Operand {
  Shape shape;
  std::string_view dtype;  // "float32"; points into the text it was read from
  bool on_host = false;
};

// "float16[8,768] float32[768]@cpu". Nothing where any part of it is not understood: half of an operation's operands prove nothing.
std::optional<std::vector<Operand>> parse_operands(std::string_view text);

std::string shape_text(const Shape& shape);                           // "[8,768]"
std::string tensor_text(std::string_view dtype, const Shape& shape);  // "float16[8,768]"

std::uint64_t element_bytes(std::string_view dtype);  // 0: not a type we know
bool is_floating(std::string_view dtype);
bool is_half(std::string_view dtype);     // float16, bfloat16
bool is_integer(std::string_view dtype);  // bool is none

// How many elements; nothing for negative extents and for numbers beyond any memory.
std::optional<std::uint64_t> element_count(const Shape& shape);
std::optional<std::uint64_t> size_of(std::string_view dtype, const Shape& shape);  // in bytes

// What an elementwise operation of the two gives: extents are compared from the last, 1 goes with anything.
std::optional<Shape> broadcast(const Shape& a, const Shape& b);

// "aten::add_.Tensor" → "add_", "torch.nn.functional.linear" → "linear".
std::string_view bare_op(std::string_view op);
// An operation of two tensors, element by element, by its bare name (in-place forms too).
bool is_pairwise(std::string_view bare);

}  // namespace faultline
