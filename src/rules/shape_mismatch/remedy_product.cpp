// Matrix products: operands transposed, swapped, flattened; a layer's input made to fit its weight.

#include "rules/shape_mismatch/fit.h"
#include "rules/shape_mismatch/remedy.h"

namespace faultline {
namespace {

std::string gives(const Shape& a, const Shape& b, const Shape& result) {
  return ": " + shape_text(a) + " times " + shape_text(b) + " gives " + shape_text(result) + ".";
}

Shape turned(const Shape& shape) {
  return shape.size() < 2 ? shape : swapped(shape, shape.size() - 2, shape.size() - 1);
}

// nn.Linear: the weight is what it is, so the input has to change, or the layer has to be built for it.
std::vector<std::string> layer_remedies(const FailedOp& failed, std::size_t input, std::int64_t in_features,
                                        std::int64_t out_features) {
  const Given& given = failed.operands[input];
  if (given.shape.empty()) return {};
  // Leading dimensions are folded into one before the product; the tensor's own shape is what the program wrote.
  const Shape& x = given.whole.size() > 2 && given.whole.back() == given.shape.back() ? given.whole : given.shape;
  const std::optional<std::uint64_t> count = element_count(x);
  std::vector<std::string> remedies;
  const std::string layer = "the layer's in_features of " + std::to_string(in_features);
  if (x.size() > 2 && x[0] > 0 && count &&
      *count == static_cast<std::uint64_t>(x[0]) * static_cast<std::uint64_t>(in_features)) {
    remedies.push_back("Flatten the input with `.flatten(1)`: " + shape_text(x) + " becomes " +
                       shape_text({x[0], in_features}) + ", which is " + layer + ".");
  }
  if (!remedies.empty()) return remedies;
  std::vector<std::size_t> matching;
  for (std::size_t dim = 0; dim + 1 < x.size(); ++dim) {
    if (x[dim] == in_features) matching.push_back(dim);
  }
  if (matching.size() == 1) {
    const Shape moved = swapped(x, matching[0], x.size() - 1);
    remedies.push_back("Swap the input's dimensions with `." + call_text("transpose", {matching[0], x.size() - 1}) +
                       "`: " + shape_text(x) + " becomes " + shape_text(moved) + ", whose last extent is " + layer +
                       ".");
  }
  remedies.push_back("Build the layer for its input, nn.Linear(" + std::to_string(x.back()) + ", " +
                     std::to_string(out_features) + "): the input's last extent is " + std::to_string(x.back()) +
                     ", the layer was built for " + std::to_string(in_features) + ".");
  return remedies;
}

}  // namespace

std::vector<std::string> product_remedies(const FailedOp& failed, const Facts& facts) {
  const std::string_view bare = bare_op(failed.op);
  const std::size_t first = first_factor(bare);
  if (failed.operands.size() < first + 2 || fit_of(failed) != Fit::kNo) return {};
  const Shape& a = failed.operands[first].shape;
  const Shape& b = failed.operands[first + 1].shape;
  if (bare == "linear") return layer_remedies(failed, first, b[1], b[0]);
  // In addmm the bias may be what does not fit: no change of the factors is then proved to help.
  const auto taken = [&](const Shape& left, const Shape& right) -> std::optional<Shape> {
    std::optional<Shape> result = product(bare, left, right);
    if (!result || (first != 0 && broadcast(failed.operands[0].shape, *result) != *result)) return std::nullopt;
    return result;
  };
  if (b.size() == 2 && passes_through(facts.trace, failed.stack, "torch/nn/modules/linear.py")) {
    return product(bare, a, b) ? std::vector<std::string>{} : layer_remedies(failed, first, b[0], b[1]);
  }
  std::vector<std::string> remedies;
  const std::string right = operand_text(failed, first + 1), left = operand_text(failed, first);
  if (const auto result = first == 0 ? matmul(a, b) : std::nullopt) {  // only the ranks are wrong
    return {"Use `torch.matmul` (the @ operator), which takes these shapes as they are" + gives(a, b, *result)};
  }
  if (const auto result = taken(a, turned(b)); result && b.size() >= 2) {
    remedies.push_back("Transpose " + right + " with `.transpose(-2, -1)`" + gives(a, turned(b), *result));
  }
  if (const auto result = taken(turned(a), b); result && a.size() >= 2) {
    remedies.push_back("Transpose " + left + " with `.transpose(-2, -1)`" + gives(turned(a), b, *result));
  }
  if (const auto result = taken(b, a)) remedies.push_back("Swap the two factors" + gives(b, a, *result));
  return remedies;
}

}  // namespace faultline
