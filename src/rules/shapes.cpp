#include "rules/shapes.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace faultline {
namespace {

constexpr std::size_t kMaxRank = 64;
constexpr std::uint64_t kMaxElements = std::uint64_t{1} << 56;

std::optional<Operand> parse_operand(std::string_view word) {
  Operand operand;
  const std::size_t open = word.find('[');
  const std::size_t close = word.find(']');
  if (open == std::string_view::npos || open == 0 || close == std::string_view::npos || close < open)
    return std::nullopt;
  operand.dtype = word.substr(0, open);
  const std::string_view place = word.substr(close + 1);
  if (!place.empty() && place != "@cpu") return std::nullopt;
  operand.on_host = !place.empty();
  std::string_view extents = word.substr(open + 1, close - open - 1);
  while (!extents.empty()) {
    std::int64_t extent = 0;
    const auto [end, error] = std::from_chars(extents.data(), extents.data() + extents.size(), extent);
    if (error != std::errc() || extent < 0 || operand.shape.size() == kMaxRank) return std::nullopt;
    operand.shape.push_back(extent);
    extents.remove_prefix(static_cast<std::size_t>(end - extents.data()));
    if (extents.empty()) break;
    if (extents.front() != ',' || extents.size() == 1) return std::nullopt;
    extents.remove_prefix(1);
  }
  return operand;
}

}  // namespace

std::optional<std::vector<Operand>> parse_operands(std::string_view text) {
  std::vector<Operand> operands;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    if (end != 0) {
      std::optional<Operand> operand = parse_operand(text.substr(0, end));
      if (!operand) return std::nullopt;
      operands.push_back(std::move(*operand));
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return operands;
}

std::string shape_text(const Shape& shape) {
  std::string text = "[";
  for (const std::int64_t extent : shape) text += (text.size() == 1 ? "" : ",") + std::to_string(extent);
  return text + "]";
}

std::string tensor_text(std::string_view dtype, const Shape& shape) { return std::string(dtype) + shape_text(shape); }

std::uint64_t element_bytes(std::string_view dtype) {
  if (dtype == "bool" || dtype == "int8" || dtype == "uint8" || dtype.starts_with("float8_")) return 1;
  if (dtype == "float16" || dtype == "bfloat16" || dtype == "int16" || dtype == "uint16") return 2;
  if (dtype == "float32" || dtype == "int32" || dtype == "uint32" || dtype == "complex32") return 4;
  if (dtype == "float64" || dtype == "int64" || dtype == "uint64" || dtype == "complex64") return 8;
  return dtype == "complex128" ? 16 : 0;
}

bool is_half(std::string_view dtype) { return dtype == "float16" || dtype == "bfloat16"; }
bool is_floating(std::string_view dtype) { return is_half(dtype) || dtype == "float32" || dtype == "float64"; }
bool is_integer(std::string_view dtype) { return dtype.starts_with("int") || dtype.starts_with("uint"); }

std::optional<std::uint64_t> element_count(const Shape& shape) {
  std::uint64_t count = 1;
  for (const std::int64_t extent : shape) {
    if (extent < 0) return std::nullopt;
    const auto factor = static_cast<std::uint64_t>(extent);
    if (factor != 0 && count > kMaxElements / factor) return std::nullopt;
    count *= factor;
  }
  return count;
}

std::optional<std::uint64_t> size_of(std::string_view dtype, const Shape& shape) {
  const std::optional<std::uint64_t> count = element_count(shape);
  const std::uint64_t each = element_bytes(dtype);
  return count && each != 0 ? std::optional(*count * each) : std::nullopt;
}

std::optional<Shape> broadcast(const Shape& a, const Shape& b) {
  const Shape& longer = a.size() >= b.size() ? a : b;
  const Shape& shorter = a.size() >= b.size() ? b : a;
  Shape result = longer;
  const std::size_t offset = longer.size() - shorter.size();
  for (std::size_t at = 0; at < shorter.size(); ++at) {
    std::int64_t& extent = result[offset + at];
    if (extent == shorter[at] || shorter[at] == 1) continue;
    if (extent != 1) return std::nullopt;
    extent = shorter[at];
  }
  return result;
}

std::string_view bare_op(std::string_view op) {
  if (const std::size_t scope = op.rfind("::"); scope != std::string_view::npos) {
    op.remove_prefix(scope + 2);
    return op.substr(0, op.find('.'));
  }
  const std::size_t dot = op.rfind('.');
  return dot == std::string_view::npos ? op : op.substr(dot + 1);
}

bool is_pairwise(std::string_view bare) {
  static constexpr std::array<std::string_view, 34> kPairwise = {
      "add",        "sub",         "rsub",         "subtract",    "mul",        "multiply",    "div",
      "divide",     "true_divide", "floor_divide", "remainder",   "fmod",       "pow",         "maximum",
      "minimum",    "fmax",        "fmin",         "atan2",       "eq",         "ne",          "lt",
      "le",         "gt",          "ge",           "logical_and", "logical_or", "logical_xor", "bitwise_and",
      "bitwise_or", "bitwise_xor", "hypot",        "copysign",    "xlogy",      "logaddexp"};
  if (bare.ends_with('_') && !bare.ends_with("__")) bare.remove_suffix(1);
  return std::find(kPairwise.begin(), kPairwise.end(), bare) != kPairwise.end();
}

}  // namespace faultline
