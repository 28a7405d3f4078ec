#include "rules/shape_mismatch/fit.h"

#include <algorithm>
#include <utility>

namespace faultline {
namespace {

bool any_of(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

Fit yes_or_no(bool fits) { return fits ? Fit::kYes : Fit::kNo; }

Fit product_fit(std::string_view bare, const std::vector<Given>& operands) {
  const std::size_t first = first_factor(bare);
  if (operands.size() < first + 2) return Fit::kUnknown;
  Shape right = operands[first + 1].shape;
  if (bare == "linear") {
    if (right.size() != 2) return Fit::kUnknown;
    std::swap(right[0], right[1]);
  }
  const std::optional<Shape> result = product(bare, operands[first].shape, right);
  if (!result) return Fit::kNo;
  return first == 0 ? Fit::kYes : yes_or_no(broadcast(operands[0].shape, *result) == *result);
}

}  // namespace

Family family_of(std::string_view bare) {
  if (any_of(bare, {"mm", "bmm", "matmul", "mv", "dot", "linear", "addmm", "addmm_", "baddbmm", "baddbmm_", "addmv",
                    "_addmm_activation"}))
    return Family::kProduct;
  if (is_pairwise(bare)) return Family::kPairwise;
  if (any_of(bare, {"binary_cross_entropy", "binary_cross_entropy_with_logits"})) return Family::kSameShape;
  if (any_of(bare, {"cat", "concat", "concatenate", "_cat"})) return Family::kCat;
  if (bare == "stack") return Family::kStack;
  if (any_of(bare, {"convolution", "_convolution", "cudnn_convolution", "conv1d", "conv2d", "conv3d",
                    "conv_transpose1d", "conv_transpose2d", "conv_transpose3d"}))
    return Family::kConvolution;
  if (any_of(bare, {"view", "reshape", "_unsafe_view", "_reshape_alias", "view_copy"})) return Family::kView;
  if (any_of(bare, {"cross_entropy", "cross_entropy_loss", "nll_loss", "nll_loss_nd", "nll_loss2d", "nll_loss_forward",
                    "nll_loss2d_forward"}))
    return Family::kClassLoss;
  if (any_of(bare, {"layer_norm", "native_layer_norm", "rms_norm", "_fused_rms_norm"})) return Family::kLayerNorm;
  if (any_of(bare, {"batch_norm", "native_batch_norm", "_native_batch_norm_legit", "_batch_norm_with_update",
                    "_batch_norm_impl_index", "cudnn_batch_norm"}))
    return Family::kBatchNorm;
  return bare == "embedding" ? Family::kEmbedding : Family::kUnknown;
}

std::size_t first_factor(std::string_view bare) { return bare.find("add") != std::string_view::npos ? 1 : 0; }

std::optional<Shape> matmul(const Shape& a, const Shape& b) {
  if (a.empty() || b.empty()) return std::nullopt;
  Shape left = a, right = b;
  if (a.size() == 1) left.insert(left.begin(), 1);
  if (b.size() == 1) right.push_back(1);
  if (left.back() != right[right.size() - 2]) return std::nullopt;
  std::optional<Shape> result = broadcast(Shape(left.begin(), left.end() - 2), Shape(right.begin(), right.end() - 2));
  if (!result) return std::nullopt;
  if (a.size() != 1) result->push_back(left[left.size() - 2]);
  if (b.size() != 1) result->push_back(right.back());
  return result;
}

std::optional<Shape> product(std::string_view bare, const Shape& a, const Shape& b) {
  const bool batched = bare.find("bmm") != std::string_view::npos;
  if (batched && (a.size() != 3 || b.size() != 3 || a[0] != b[0])) return std::nullopt;
  if (!batched && bare.find("mm") != std::string_view::npos && (a.size() != 2 || b.size() != 2)) return std::nullopt;
  if (bare.ends_with("mv") && (a.size() != 2 || b.size() != 1)) return std::nullopt;
  if (bare == "dot" && (a.size() != 1 || b.size() != 1)) return std::nullopt;
  return matmul(a, b);
}

std::optional<Shape> cat(const std::vector<Shape>& shapes, std::size_t dim) {
  std::optional<Shape> result;
  for (const Shape& shape : shapes) {
    if (shape == Shape{0}) continue;  // an empty list's tensor goes with anything
    if (dim >= shape.size() || (result && result->size() != shape.size())) return std::nullopt;
    if (!result) {
      result = shape;
      continue;
    }
    for (std::size_t at = 0; at < shape.size(); ++at) {
      if (at != dim && shape[at] != (*result)[at]) return std::nullopt;
    }
    if (shape[dim] > (std::int64_t{1} << 56) - (*result)[dim]) return std::nullopt;
    (*result)[dim] += shape[dim];
  }
  return result;
}

std::int64_t channels_wanted(const Shape& weight, std::int64_t groups, bool transposed) {
  if (weight.size() < 3 || groups < 1 || groups > (1 << 20) || weight[1] > (std::int64_t{1} << 40)) return -1;
  return transposed ? weight[0] : weight[1] * groups;
}

bool class_loss_fits(const Shape& scores, const Shape& target, bool target_is_floating) {
  if (target_is_floating) return !scores.empty() && scores == target;
  if (scores.size() == 1) return target.empty();
  if (scores.size() < 2 || target.size() + 1 != scores.size() || scores[0] != target[0]) return false;
  return std::equal(scores.begin() + 2, scores.end(), target.begin() + 1);
}

Shape permuted(const Shape& shape, const std::vector<std::size_t>& order) {
  Shape result;
  for (const std::size_t dim : order) result.push_back(shape[dim]);
  return result;
}

Shape swapped(Shape shape, std::size_t i, std::size_t j) {
  std::swap(shape[i], shape[j]);
  return shape;
}

Fit fit_of(const FailedOp& failed) {
  const std::string_view bare = bare_op(failed.op);
  const std::vector<Given>& operands = failed.operands;
  if (operands.empty() || !failed.has_all_operands) return Fit::kUnknown;
  switch (family_of(bare)) {
    case Family::kProduct: return product_fit(bare, operands);
    case Family::kPairwise: {
      if (operands.size() != 2) return Fit::kUnknown;
      const std::optional<Shape> result = broadcast(operands[0].shape, operands[1].shape);
      const bool in_place = bare.ends_with('_') && !bare.ends_with("__");
      return yes_or_no(result && (!in_place || *result == operands[0].shape));
    }
    case Family::kSameShape:
      return operands.size() < 2 ? Fit::kUnknown : yes_or_no(operands[0].shape == operands[1].shape);
    case Family::kStack:
      return yes_or_no(std::all_of(operands.begin(), operands.end(),
                                   [&](const Given& given) { return given.shape == operands[0].shape; }));
    case Family::kClassLoss:
      if (operands.size() < 2) return Fit::kUnknown;
      return yes_or_no(class_loss_fits(operands[0].shape, operands[1].shape, is_floating(operands[1].dtype)));
    default: return Fit::kUnknown;  // what they ask for is not in their operands alone
  }
}

}  // namespace faultline
