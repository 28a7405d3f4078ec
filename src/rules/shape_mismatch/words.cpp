#include "rules/shape_mismatch/words.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace faultline {
namespace {

constexpr std::size_t kMaxWords = 240;

template <std::size_t kCount>
bool has_any(std::string_view words, const std::array<std::string_view, kCount>& parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](std::string_view part) { return words.find(part) != std::string_view::npos; });
}

constexpr std::array<std::string_view, 9> kUnrelated = {
    "out of memory",   "index out of range",    "out of bounds",
    "not implemented", "Could not run",         "not supported on",
    "CUDA error",      "does not require grad", "is out of bounds for dimension"};

constexpr std::array<std::string_view, 8> kDevice = {
    "to be on the same device",  // Expected all tensors …
    "be on the same device",
    "different devices",  // the dry run's own: found two different devices
    "Device Propagation",       "different from other tensors on", "but expected all tensors to be on",
    "is on CPU, but expected",  "on cpu or on the same device",
};

constexpr std::array<std::string_view, 16> kDtype = {
    // TensorFlow: "cannot compute MatMul as input #1(zero-based) was expected to be a float tensor but is a int32 tensor"
    "(zero-based) was expected to be a",
    "the same dtype",
    "same dtype, but got",
    "expected scalar type",
    "Expected scalar type",
    "Expected object of scalar type",
    "following scalar types",
    "can't be cast to",
    "dtypes match",
    "tensors used as indices must be",
    "found dtype",
    "Expected dtype",
    "dtype must be",
    "expects floating point",
    "Expected floating point",
    "same data type",
};

constexpr std::array<std::string_view, 62> kShape = {
    // TensorFlow's
    "size-incompatible",
    "Incompatible shapes",
    "required broadcastable shapes",
    "in both shapes must be equal",
    "but the requested shape has",
    "Dimensions must be equal, but are",
    "Shapes must be equal rank",
    "Shape must be rank ",
    "Cannot reshape a tensor with",
    "is not a multiple of input depth of filter",
    "must be evenly divisible by filter depth",
    "shapes cannot be multiplied",
    "same reduction dim",
    "size mismatch",
    "Size mismatch",
    "must match the size of tensor",
    "cannot be broadcast",
    "not broadcastable",
    "could not be broadcast",
    "broadcast a dimension of length",
    "does not broadcast with",
    "doesn't match the broadcast shape",
    "Sizes of tensors must match",
    "same number of dimensions",
    "to be equal size",
    "is invalid for input of size",
    "not compatible with input tensor's size",
    "The expanded size of the tensor",
    "number of sizes provided",
    "Expected target size",
    "to match target batch_size",
    "multi-target not supported",
    "spatial targets supported",
    "expected input[",
    "expected input with shape",
    "channels, but got",
    "Kernel size can't be greater",
    "must be a matrix",
    "must be a 3D tensor",
    "must be 2D",
    "must be 3D",
    "must be a vector",
    "Expected size for first two dimensions",
    "(unbatched)",
    "D input (got",
    "elements not",
    "don't match",
    "must be the same as input size",
    "different to the input size",
    "inconsistent tensor size",
    "must be equal to input_size",
    "Expected hidden",
    "shape mismatch",
    "Shape mismatch",
    "split_with_sizes expects",
    "The shape of the mask",
    "number of channels in input",
    "Dimension out of range",
    "same shape",
    "same size",
    "Number of dimensions of tensors must match",
    "Cannot view a tensor with shape",
};

bool is_space(char c) { return c == ' ' || c == '\t'; }

}  // namespace

bool say_no_kernel(std::string_view words) { return words.find("not implemented for") != std::string_view::npos; }

std::string_view index_words(std::string_view words) {
  constexpr std::string_view kBegin = "CUDA error: device-side assert triggered (";
  if (!words.starts_with(kBegin) || !words.ends_with(')')) return {};
  return words.substr(kBegin.size(), words.size() - kBegin.size() - 1);
}

Trouble trouble_of(std::string_view words) {
  if (!index_words(words).empty()) return Trouble::kIndex;
  if (has_any(words, kUnrelated)) return Trouble::kUnrelated;
  if (has_any(words, kDevice)) return Trouble::kDevice;
  // "Input type (torch.cuda.HalfTensor) and weight type (torch.HalfTensor) should be the same" says both in one form.
  if (words.find("Input type (") != std::string_view::npos &&
      words.find("should be the same") != std::string_view::npos) {
    const std::size_t second = words.find(" type (", words.find("Input type (") + 8);
    const bool first_on_gpu = words.substr(0, second).find("cuda") != std::string_view::npos;
    const bool second_on_gpu =
        second != std::string_view::npos && words.substr(second).find("cuda") != std::string_view::npos;
    return first_on_gpu != second_on_gpu ? Trouble::kDevice : Trouble::kDtype;
  }
  if (has_any(words, kDtype)) return Trouble::kDtype;
  return has_any(words, kShape) ? Trouble::kShape : Trouble::kUnknown;
}

std::optional<Shape> list_after(std::string_view words, std::string_view marker) {
  std::size_t at = words.find(marker);
  if (at == std::string_view::npos) return std::nullopt;
  at = words.find('[', at);
  if (at == std::string_view::npos) return std::nullopt;
  Shape list;
  ++at;
  while (at < words.size() && words[at] != ']') {
    if (words[at] == ',' || is_space(words[at])) {
      ++at;
      continue;
    }
    std::int64_t extent = 0;
    const auto [end, error] = std::from_chars(words.data() + at, words.data() + words.size(), extent);
    if (error != std::errc() || list.size() == 16) return std::nullopt;
    list.push_back(extent);
    at = static_cast<std::size_t>(end - words.data());
  }
  return at < words.size() ? std::optional(list) : std::nullopt;
}

std::optional<std::int64_t> number_after(std::string_view words, std::string_view marker) {
  const std::size_t found = words.find(marker);
  if (found == std::string_view::npos) return std::nullopt;
  words.remove_prefix(found + marker.size());
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(words.data(), words.data() + words.size(), number);
  return error == std::errc() ? std::optional(number) : std::nullopt;
}

std::string first_words(std::string_view words) {
  words = words.substr(0, words.find('\n'));
  if (words.size() <= kMaxWords) return std::string(words);
  std::size_t cut = kMaxWords;
  while (cut > 0 && (static_cast<unsigned char>(words[cut]) & 0xc0) == 0x80) --cut;  // not inside a character
  return std::string(words.substr(0, cut)) + " …";
}

}  // namespace faultline
