// A small algebra of shapes: which shapes an operation takes, and what it then gives.
//
// It knows the operations whose operands' shapes decide alone, and says kUnknown of the rest. A change is proposed to the user only when this
// algebra says that the changed operands fit; the remedies (remedy.h) are the search, this is the proof.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "rules/shape_mismatch/failed_op.h"
#include "rules/shapes.h"

namespace faultline {

enum class Family : std::uint8_t {
  kUnknown,
  kProduct,
  kPairwise,
  kSameShape,
  kCat,
  kStack,
  kConvolution,
  kView,
  kClassLoss,
  kLayerNorm,
  kBatchNorm,
  kEmbedding
};
Family family_of(std::string_view bare);

// Matrix products. `strict` is what mm, bmm, mv and dot ask for beyond matmul: their own ranks.
std::optional<Shape> matmul(const Shape& a, const Shape& b);
std::optional<Shape> product(std::string_view bare, const Shape& a, const Shape& b);
// Which two operands of a product are multiplied: addmm's first is added.
std::size_t first_factor(std::string_view bare);

// Concatenated along dim, which counts from the front.
std::optional<Shape> cat(const std::vector<Shape>& shapes, std::size_t dim);

// Channels of a convolution's input that its weight asks for.
std::int64_t channels_wanted(const Shape& weight, std::int64_t groups, bool transposed);

// (N, C, d1…) scores with (N, d1…) class numbers, (C) with (), or probabilities of the scores' own shape and a floating type.
bool class_loss_fits(const Shape& scores, const Shape& target, bool target_is_floating);

// The shape with its dimensions in this order; and with two of them swapped, counted from the front.
Shape permuted(const Shape& shape, const std::vector<std::size_t>& order);
Shape swapped(Shape shape, std::size_t i, std::size_t j);

enum class Fit : std::uint8_t { kYes, kNo, kUnknown };
// Do the operands fit the operation, as far as shapes go?
Fit fit_of(const FailedOp& failed);

}  // namespace faultline
