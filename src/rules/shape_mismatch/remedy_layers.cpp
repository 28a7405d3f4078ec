// Layers and losses: channels where they are expected, the normalised dimension last, classes second.
#include <algorithm>

#include "rules/shape_mismatch/fit.h"
#include "rules/shape_mismatch/remedy.h"
#include "rules/shape_mismatch/words.h"

namespace faultline {
namespace {

// Channels last (NHWC, NLC) where they are expected second.
std::string channels_second(const Shape& x) {
  if (x.size() == 3) return "transpose(1, 2)";
  std::vector<std::size_t> order = {0, x.size() - 1};
  for (std::size_t dim = 1; dim + 1 < x.size(); ++dim) order.push_back(dim);
  return call_text("permute", order);
}

Shape with_channels_second(const Shape& x) {
  Shape result = x;
  std::rotate(result.begin() + 1, result.end() - 1, result.end());
  return result;
}

// Padding and dilation are not in the trace: where the kernel fits the bare extents, padding cannot spoil it.
bool kernel_fits(const Shape& x, const Shape& weight, bool transposed) {
  for (std::size_t dim = 2; dim < weight.size(); ++dim) {
    if (!transposed && x[dim] < weight[dim]) return false;
  }
  return true;
}

}  // namespace

std::vector<std::string> convolution_remedies(const FailedOp& failed) {
  if (failed.operands.size() < 2) return {};
  const Shape& weight = failed.operands[1].shape;
  const bool transposed = bare_op(failed.op).find("transpose") != std::string_view::npos ||
                          failed.words.find("transposed=1") != std::string_view::npos;
  const std::int64_t groups = number_after(failed.words, "groups=").value_or(1);
  const std::int64_t wanted = channels_wanted(weight, groups, transposed);
  if (wanted <= 0) return {};
  const Given& given = failed.operands[0];
  // A tensor without a batch dimension gets one before the convolution looks at it.
  const Shape& x = given.whole.size() + 1 == given.shape.size() && given.shape[0] == 1 ? given.whole : given.shape;
  const std::size_t rank = weight.size();
  std::vector<std::string> remedies;
  const auto becomes = [&](const Shape& shape) {
    return ": " + shape_text(x) + " becomes " + shape_text(shape) + ", with the " + std::to_string(wanted) +
           (wanted == 1 ? " channel" : " channels") + " that the weight " + shape_text(weight) + " asks for.";
  };
  if (x.size() == rank && x[1] != wanted) {
    if (x.back() == wanted && kernel_fits(with_channels_second(x), weight, transposed)) {
      remedies.push_back("Put the channels second with `." + channels_second(x) + "`" +
                         becomes(with_channels_second(x)));
    } else if (x[1] == 1 && kernel_fits(x, weight, transposed)) {
      Shape expanded = x;
      expanded[1] = wanted;
      std::string sizes = "-1, " + std::to_string(wanted);
      for (std::size_t at = 2; at < rank; ++at) sizes += ", -1";
      remedies.push_back("Repeat the one channel with `.expand(" + sizes + ")`, which copies nothing" +
                         becomes(expanded));
    }
    if (remedies.empty() && groups == 1 && x[1] > 0 && kernel_fits(x, weight, transposed)) {
      remedies.push_back("Build the layer for its input, with in_channels=" + std::to_string(x[1]) +
                         ": the input has " + std::to_string(x[1]) + " channels, the layer was built for " +
                         std::to_string(wanted) + ".");
    }
  } else if (x.size() + 1 == rank && wanted == 1 && x[0] != 1) {
    Shape longer = x;
    longer.insert(longer.begin() + 1, 1);
    if (kernel_fits(longer, weight, transposed))
      remedies.push_back("Give the input a channel dimension with `.unsqueeze(1)`" + becomes(longer));
  }
  return remedies;
}

std::vector<std::string> norm_remedies(const FailedOp& failed) {
  const Shape& x = failed.operands[0].shape;
  if (x.size() < 2) return {};
  if (family_of(bare_op(failed.op)) == Family::kBatchNorm) {
    if (failed.operands.size() < 2 || failed.operands[1].shape.size() != 1 || x.size() < 3) return {};
    const std::int64_t channels = failed.operands[1].shape[0];
    if (x[1] == channels || x.back() != channels) return {};
    return {"Put the channels second with `." + channels_second(x) + "`: " + shape_text(x) + " becomes " +
            shape_text(with_channels_second(x)) + ", and the layer has " + std::to_string(channels) + " channels."};
  }
  const std::optional<Shape> normalized = list_after(failed.words, "normalized_shape=");
  if (!normalized || normalized->size() != 1 || x.back() == (*normalized)[0]) return {};
  std::vector<std::string> remedies;
  if (std::count(x.begin(), x.end(), (*normalized)[0]) == 1) {
    const auto dim = static_cast<std::size_t>(std::find(x.begin(), x.end(), (*normalized)[0]) - x.begin());
    remedies.push_back("Put the normalised dimension last with `." + call_text("transpose", {dim, x.size() - 1}) +
                       "`: " + shape_text(x) + " becomes " + shape_text(swapped(x, dim, x.size() - 1)) + ".");
  }
  remedies.push_back("Build the layer for its input, with normalized_shape=" + std::to_string(x.back()) +
                     ": that is the input's last extent, the layer was built for " + std::to_string((*normalized)[0]) +
                     ".");
  return remedies;
}

std::vector<std::string> class_loss_remedies(const FailedOp& failed) {
  if (failed.operands.size() < 2 || fit_of(failed) != Fit::kNo) return {};
  const Shape& scores = failed.operands[0].shape;
  const Shape& target = failed.operands[1].shape;
  const bool floating = is_floating(failed.operands[1].dtype);
  if (scores.empty() || floating) return {};
  const std::optional<std::uint64_t> count = element_count(target);
  const std::string both = shape_text(scores) + " scores with " + shape_text(target) + " classes";
  const Shape flat_target = count ? Shape{static_cast<std::int64_t>(*count)} : Shape{};
  std::vector<std::string> remedies;
  // Scores written with the classes last, as a model of sequences or pixels gives them.
  if (scores.size() >= 3 && class_loss_fits(with_channels_second(scores), target, false)) {
    remedies.push_back("Put the classes second, `scores." + channels_second(scores) + "`: " + both + " become " +
                       shape_text(with_channels_second(scores)) + " with " + shape_text(target) + ".");
  }
  const std::optional<std::uint64_t> rows = element_count(Shape(scores.begin(), scores.end() - 1));
  if (scores.size() >= 3 && rows && count && *rows == *count) {
    const Shape flat{static_cast<std::int64_t>(*rows), scores.back()};
    remedies.push_back("Flatten both, `scores.flatten(0, -2)` and `target.flatten()`: " + shape_text(flat) + " with " +
                       shape_text(flat_target) + ".");
  }
  if (scores.size() == 2 && target.size() >= 2 && count && *count == static_cast<std::uint64_t>(scores[0])) {
    remedies.push_back("Flatten the target with `.flatten()`: " + shape_text(scores) + " scores take " +
                       shape_text(flat_target) + " class numbers.");
  }
  if (scores == target && scores.size() == 2) {
    remedies.push_back("Give class numbers, not one-hot rows: `target.argmax(1)` is " + shape_text({scores[0]}) +
                       "; or give the rows as probabilities with `.to(scores.dtype)`.");
  }
  return remedies;
}

}  // namespace faultline
