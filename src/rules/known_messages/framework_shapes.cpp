// Shapes that JAX, TensorFlow, Keras or NumPy refused, from the words of the exception.
#include <algorithm>
#include <array>

#include "base/characters.h"
#include "rules/known_messages/known_messages.h"
#include "rules/shape_mismatch/words.h"
#include "sources/rule_names.h"

namespace faultline {
namespace {

constexpr std::size_t kNone = std::string_view::npos;

// "(3,)", "[32,512]", "(None, 10)", "float32[3,4]" without its type: as they were printed, in order; at most four.
std::vector<std::string> printed_shapes(std::string_view words) {
  std::vector<std::string> shapes;
  for (std::size_t open = words.find_first_of("(["); open != kNone && shapes.size() < 4;
       open = words.find_first_of("([", open + 1)) {
    const std::size_t close = words.find_first_not_of("0123456789, None?xd", open + 1);
    if (close == kNone || words[close] != (words[open] == '(' ? ')' : ']')) continue;
    // "In[0]: [32,512]", "shape[1] = [2,4]": a number of an operand
    const std::string_view before = words.substr(0, open);
    if (before.ends_with("In") || before.ends_with("shape")) continue;
    std::string_view inside = words.substr(open + 1, close - open - 1);
    while (inside.ends_with(' ')) inside.remove_suffix(1);
    const bool has_extent = inside.find_first_of("0123456789?") != kNone || inside.find("None") != kNone;
    if (has_extent || inside.empty()) shapes.push_back(words[open] + std::string(inside) + words[close]);
  }
  return shapes;
}

// The last word in front of the marker: "add" of "add got incompatible shapes".
std::string word_before(std::string_view words, std::size_t at) {
  while (at > 0 && words[at - 1] == ' ') --at;
  std::size_t begin = at;
  while (begin > 0 && (is_letter(words[begin - 1]) || is_digit(words[begin - 1]) || words[begin - 1] == '_')) --begin;
  return std::string(words.substr(begin, at - begin));
}

// "MatMul" of "[Op:MatMul]" or of "for '{{node MatMul}} = MatMul[T=…"; empty: it is not named.
std::string operation_in(std::string_view words) {
  for (const std::string_view mark : {"[Op:", "}} = ", " (op: '"}) {
    const std::size_t at = words.find(mark);
    if (at == kNone) continue;
    const std::string_view rest = words.substr(at + mark.size());
    return std::string(rest.substr(0, std::min(rest.find_first_of("][' ("), std::size_t{60})));
  }
  return {};
}

struct Refusal {
  std::string_view marker;
  std::string_view what;  // "… got A and B: "
  std::string_view rule;  // what would have to be so
  std::string_view remedy;
};

constexpr std::string_view kBroadcast = "each dimension, from the last on, must be equal in both, or 1 in one of them";
constexpr std::string_view kExpand =
    "Give the missing dimension a place where the two are combined (x[:, None], keepdims=True in what reduces, "
    "jnp.expand_dims or tf.expand_dims), or bring both to one extent.";
constexpr std::string_view kInner =
    "the last dimension of the first must equal that of the second which is summed over";
constexpr std::string_view kWeights =
    "Print both shapes before this line: a layer or weight built for another number of features, or a missing "
    "transpose (w.T) or flatten, are usual.";
constexpr std::string_view kSameRank = "all dimensions but the one that is joined along must be equal";
constexpr std::string_view kPad = "Pad or crop the smaller one, or join along another axis.";
constexpr std::string_view kCount = "the number of entries must stay the same";
constexpr std::string_view kMinusOne =
    "Let one extent follow from the others (-1), and look what the data's real extents are: a fixed size (image, "
    "sequence, classes) that does not hold for the last batch is usual.";
constexpr std::string_view kLabels =
    "Scores and labels must go together: the last layer has as many outputs as there are classes; whole numbers as "
    "labels want a sparse loss (sparse_categorical_crossentropy), one-hot rows the plain one.";

constexpr auto kRefusals = std::to_array<Refusal>({
    {"requires contracting dimensions", "A product", kInner, kWeights},
    {"atrix size-incompatible", "A matrix product", kInner, kWeights},
    {"mismatch in its core dimension", "A matrix product", kInner, kWeights},
    {"incompatible shapes for broadcasting", "", kBroadcast, kExpand},
    {"ncompatible shapes for broadcasting", "An operation on arrays", kBroadcast, kExpand},
    {"could not be broadcast together", "An operation on arrays", kBroadcast, kExpand},
    {"ncompatible shapes: ", "An operation", kBroadcast, kExpand},
    {"annot concatenate arrays", "A concatenation", kSameRank, kPad},
    {"in both shapes must be equal", "A concatenation or a similar operation", kSameRank, kPad},
    {"imensions must be equal, but are ", "An operation", "the two dimensions must be equal", kWeights},
    {"logits and labels must have the same first dimension", "A loss", "there must be one label for each row of scores",
     kLabels},
    {" are incompatible", "A loss or another operation", "the two shapes must be one", kLabels},
    {"annot reshape array of s", "A reshape", kCount, kMinusOne},
    {"nput to reshape is a tensor with ", "A reshape", kCount, kMinusOne},
});

}  // namespace

bool describe_framework_shapes(std::string_view words, Finding& finding) {
  const auto found = std::find_if(kRefusals.begin(), kRefusals.end(),
                                  [&](const Refusal& refusal) { return words.find(refusal.marker) != kNone; });
  if (found == kRefusals.end()) return false;
  const std::size_t at = words.find(found->marker);
  std::string who(found->what);
  if (who.empty()) {
    // "add got incompatible shapes for broadcasting"
    const std::size_t got = words.substr(0, at).rfind(" got ");
    const std::string name = got == kNone ? std::string() : word_before(words, got);
    who = name.empty() ? "An operation on arrays" : "The operation " + name;
  } else if (const std::string op = operation_in(words); !op.empty()) {
    who = "The operation " + op;
  }
  // "… with input shapes: [32,512], [256,10]" tells the whole of what a beginning tells in part
  const std::size_t whole = words.find("with input shapes: ");
  std::vector<std::string> shapes = printed_shapes(whole == kNone ? words : words.substr(whole));
  if (shapes.size() > 2 && found->marker != std::string_view("annot concatenate arrays")) shapes.resize(2);
  std::string operands;
  for (std::size_t i = 0; i < shapes.size(); ++i)
    operands += (i == 0 ? "" : i + 1 == shapes.size() ? " and " : ", ") + shapes[i];
  finding.rule = rule_name::kShapeMismatch;
  finding.message =
      who + (operands.empty() ? " refused its operands" : " got " + operands) + ": " + std::string(found->rule);
  if (operands.empty()) finding.message += " (" + first_words(words) + ")";
  for (const std::string& shape : shapes) add_evidence(finding, "shape", shape);
  add_try(finding, std::string(found->remedy));
  return true;
}

}  // namespace faultline
