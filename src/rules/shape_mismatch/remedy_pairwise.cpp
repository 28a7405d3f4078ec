// Elementwise operations, and tensors put together: which arrangement of dimensions meets which.
#include <algorithm>
#include <numeric>

#include "rules/shape_mismatch/fit.h"
#include "rules/shape_mismatch/remedy.h"
#include "rules/shape_mismatch/words.h"

namespace faultline {
namespace {

struct Arranged {
  std::string how;
  Shape shape;
};

// Arrangements of `shape` that meet `other` dimension by dimension, likeliest first.
std::vector<Arranged> arrangements(const Shape& shape, const Shape& other) {
  std::vector<Arranged> found;
  if (shape.size() == other.size() + 1 && shape.back() == 1) {
    found.push_back({"Squeeze its last dimension with `.squeeze(-1)`", Shape(shape.begin(), shape.end() - 1)});
  }
  // A tensor of lower rank stands for some run of the other's dimensions; extents behind the run have to be 1.
  std::size_t runs = 0, behind = 0;
  for (std::size_t start = 0; !shape.empty() && start + shape.size() < other.size(); ++start) {
    if (!std::equal(shape.begin(), shape.end(), other.begin() + static_cast<std::ptrdiff_t>(start))) continue;
    ++runs;
    behind = other.size() - start - shape.size();
  }
  if (runs == 1) {
    Shape longer = shape;
    longer.insert(longer.end(), behind, 1);
    std::string index = "[...";
    for (std::size_t at = 0; at < behind; ++at) index += ", None";
    found.push_back({"Give it " + std::string(behind == 1 ? "a dimension" : std::to_string(behind) + " dimensions") +
                         " of extent 1 at the end with `" + index + "]`",
                     longer});
  }
  if (shape.size() == other.size() && shape.size() >= 2 && shape.size() <= 5) {
    std::vector<std::size_t> order(shape.size()), only;
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::size_t matches = 0;
    do {
      if (permuted(shape, order) != other) continue;
      ++matches;
      only = order;
    } while (std::next_permutation(order.begin(), order.end()));
    if (matches == 1) {
      const bool plain = shape.size() == 2;
      found.push_back({plain ? "Transpose it with `.transpose(0, 1)`"
                             : "Reorder its dimensions with `." + call_text("permute", only) + "`",
                       other});
    }
  }
  return found;
}

}  // namespace

std::vector<std::string> pairwise_remedies(const FailedOp& failed) {
  if (failed.operands.size() != 2 || fit_of(failed) != Fit::kNo) return {};
  const std::string_view bare = bare_op(failed.op);
  const bool in_place = bare.ends_with('_') && !bare.ends_with("__");
  std::vector<std::string> remedies;
  for (const std::size_t which : {std::size_t{1}, std::size_t{0}}) {
    if (in_place && which == 0) continue;  // what is written to keeps its shape
    const Shape& other = failed.operands[1 - which].shape;
    for (const Arranged& arranged : arrangements(failed.operands[which].shape, other)) {
      const std::optional<Shape> result = broadcast(arranged.shape, other);
      // It has to meet the other, not to blow it up.
      if (!result || (*result != other && *result != arranged.shape) || (in_place && *result != other)) continue;
      remedies.push_back(arranged.how + ": " + operand_text(failed, which) + " becomes " + shape_text(arranged.shape) +
                         " and goes with " + shape_text(other) + ".");
      break;
    }
  }
  return remedies;
}

std::vector<std::string> same_shape_remedies(const FailedOp& failed) {
  if (fit_of(failed) != Fit::kNo) return {};
  std::vector<std::string> remedies;
  for (const std::size_t which : {std::size_t{0}, std::size_t{1}}) {
    const Shape& other = failed.operands[1 - which].shape;
    for (const Arranged& arranged : arrangements(failed.operands[which].shape, other)) {
      if (arranged.shape != other) continue;
      remedies.push_back(arranged.how + ": " + operand_text(failed, which) + " becomes " + shape_text(arranged.shape) +
                         ", the shape of the other.");
      break;
    }
  }
  return remedies;
}

std::vector<std::string> cat_remedies(const FailedOp& failed) {
  std::vector<Shape> shapes;
  for (const Given& given : failed.operands) shapes.push_back(given.shape);
  if (shapes.size() < 2) return {};
  const std::size_t rank = std::max_element(shapes.begin(), shapes.end(), [](const Shape& a, const Shape& b) {
                             return a.size() < b.size();
                           })->size();
  const std::optional<std::int64_t> written = number_after(failed.words, "except in dimension ");
  std::vector<std::string> remedies;
  for (std::size_t dim = 0; dim < rank; ++dim) {
    if (written && *written == static_cast<std::int64_t>(dim)) continue;
    if (const auto result = cat(shapes, dim))
      remedies.push_back("Put them together along another dimension, `dim=" + std::to_string(dim) +
                         "`: the result is " + shape_text(*result) + ".");
  }
  // One dimension short: that of the dimension along which they are put together.
  std::vector<std::string> longer;
  for (std::size_t dim = 0; dim < rank && remedies.empty(); ++dim) {
    std::vector<Shape> lifted = shapes;
    std::string which;
    for (std::size_t at = 0; at < lifted.size(); ++at) {
      if (lifted[at].size() + 1 != rank) continue;
      lifted[at].insert(lifted[at].begin() + static_cast<std::ptrdiff_t>(dim), 1);
      if (which.size() < 120) which += (which.empty() ? "" : " and ") + operand_text(failed, at);
    }
    if (which.empty()) break;
    if (const auto result = cat(lifted, dim)) {
      longer.push_back("Give " + which + " the missing dimension with `.unsqueeze(" + std::to_string(dim) +
                       ")`: along dim=" + std::to_string(dim) + " the result is " + shape_text(*result) + ".");
    }
  }
  if (longer.size() == 1) remedies.push_back(longer[0]);
  return remedies.size() > 2 ? std::vector<std::string>{} : remedies;
}

std::vector<std::string> stack_remedies(const FailedOp& failed) {
  std::vector<Shape> shapes;
  for (const Given& given : failed.operands) shapes.push_back(given.shape);
  if (shapes.size() < 2 || fit_of(failed) != Fit::kNo) return {};
  std::vector<std::string> remedies;
  for (std::size_t dim = 0; dim < shapes[0].size(); ++dim) {
    const std::optional<Shape> result = cat(shapes, dim);
    if (!result) continue;
    remedies.push_back("Put them together with `torch.cat(…, dim=" + std::to_string(dim) +
                       ")`, where that dimension may differ: the result is " + shape_text(*result) + ".");
    if (dim == 0)
      remedies.push_back(
          "Pad them to one length with `torch.nn.utils.rnn.pad_sequence(…, batch_first=True)`: they differ in their "
          "first dimension alone.");
  }
  return remedies;
}

std::vector<std::string> view_remedies(const FailedOp& failed) {
  const Given& given = failed.operands[0];
  const auto says = [&](std::string_view part) { return failed.words.find(part) != std::string_view::npos; };
  if (says("not compatible with input tensor's size and stride") || says("Cannot view a tensor with shape")) {
    return {
        "Write `.reshape(…)` in place of `.view(…)`: the tensor's dimensions do not lie in memory in that order, so it "
        "has to be copied."};
  }
  const std::optional<Shape> target = list_after(failed.words, "shape '");
  const std::optional<std::uint64_t> count = element_count(given.shape);
  if (!target || target->empty() || !count || *count == 0 ||
      number_after(failed.words, "invalid for input of size ") != static_cast<std::int64_t>(*count))
    return {};
  const bool infers = std::count(target->begin(), target->end(), -1) == 1;
  std::vector<std::string> remedies;
  const auto propose = [&](std::size_t dim, std::uint64_t extent) {
    Shape changed = *target;
    changed[dim] = static_cast<std::int64_t>(extent);
    remedies.push_back("Write " + std::to_string(extent) + " in place of " + std::to_string((*target)[dim]) +
                       " in dimension " + std::to_string(dim) + ": " + shape_text(changed) + " has the tensor's " +
                       std::to_string(*count) + " elements.");
  };
  if (infers) {
    // Rows of one sample each: everything but the first extent.
    if (target->size() != 2 || (*target)[0] != -1 || given.whole.size() < 2 || given.whole[0] <= 0) return {};
    const std::uint64_t features = *count / static_cast<std::uint64_t>(given.whole[0]);
    return {"Write " + std::to_string(features) + " in place of " + std::to_string((*target)[1]) + ": " +
            shape_text(given.whole) + " has " + std::to_string(features) + " elements for each of its " +
            std::to_string(given.whole[0]) + " rows."};
  }
  if (std::any_of(target->begin(), target->end(), [](std::int64_t extent) { return extent <= 0; })) return {};
  for (std::size_t dim = 0; dim < target->size() && remedies.size() < 2; ++dim) {
    Shape others = *target;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(dim));
    const std::optional<std::uint64_t> product_of_others = element_count(others);
    if (product_of_others && *product_of_others != 0 && *count % *product_of_others == 0)
      propose(dim, *count / *product_of_others);
  }
  return remedies;
}

}  // namespace faultline
