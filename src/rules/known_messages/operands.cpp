#include <algorithm>
#include <charconv>

#include "rules/known_messages/known_messages.h"
#include "rules/shape_mismatch/words.h"
#include "rules/shapes.h"
#include "rules/stated_error.h"
#include "sources/rule_names.h"

namespace faultline {
namespace {

// All whole numbers of the words, in order; at most 32.
Shape numbers_in(std::string_view words) {
  Shape numbers;
  for (std::size_t at = 0; at < words.size() && numbers.size() < 32;) {
    if (words[at] < '0' || words[at] > '9') {
      ++at;
      continue;
    }
    std::int64_t number = 0;
    const bool negative = at > 0 && words[at - 1] == '-';
    const auto [end, code] = std::from_chars(words.data() + at, words.data() + words.size(), number);
    if (code != std::errc()) break;
    numbers.push_back(negative ? -number : number);
    at = static_cast<std::size_t>(end - words.data());
  }
  return numbers;
}

std::string_view after(std::string_view words, std::string_view label) {
  const std::size_t at = words.find(label);
  return at == std::string_view::npos ? std::string_view() : words.substr(at + label.size());
}

std::string_view word_after(std::string_view words, std::string_view label) {
  const std::string_view rest = after(words, label);
  return rest.substr(0, rest.find_first_of(" ,.!;:)("));
}

std::string text(std::int64_t number) { return std::to_string(number); }

// What the numbers say is the opposite of what the words say: nothing is told from them.
bool contradicts(Finding& finding, const std::string& what) {
  finding.message =
      what + " is possible with these numbers, though the text says it is not: this is not as PyTorch wrote it";
  finding.confidence = Confidence::kHint;
  add_try(finding, "Check whether the text joins several messages or was edited; paste the program's own output.");
  return true;
}

// "mat1 and mat2 shapes cannot be multiplied (32x512 and 256x10)", "size mismatch, m1: [32 x 512], m2: [256 x 10]"
bool product(std::string_view words, Finding& finding) {
  std::string_view operands = after(words, "cannot be multiplied (");
  if (operands.empty()) operands = after(words, "size mismatch, ");
  Shape n = numbers_in(operands);
  // "m1", "m2" hold digits too
  if (words.find("m1: [") != std::string_view::npos && n.size() >= 6) n = {n[1], n[2], n[4], n[5]};
  if (n.size() < 4) return false;
  const std::int64_t rows = n[0], inner = n[1], wanted = n[2], columns = n[3];
  if (inner == wanted)
    return contradicts(finding,
                       "A matrix product of " + shape_text({rows, inner}) + " and " + shape_text({wanted, columns}));
  finding.message = "A matrix product got " + shape_text({rows, inner}) + " and " + shape_text({wanted, columns}) +
                    ": the first has " + text(inner) + " columns, the second " + text(wanted) +
                    " rows, and they must be equal";
  add_try(finding, "If it is a layer, it was built as nn.Linear(" + text(wanted) + ", " + text(columns) +
                       ") and its input ends in " + text(inner) + ": nn.Linear(" + text(inner) + ", " + text(columns) +
                       ") takes it, or bring the input to " + text(wanted) + ".");
  if (inner > 0 && rows > 0 && inner < wanted && wanted % inner == 0 && rows % (wanted / inner) == 0)
    add_try(finding, "The input may lack a flatten: its " + text(rows) + " rows of " + text(inner) +
                         " are as many numbers as " + text(rows / (wanted / inner)) + " rows of " + text(wanted) +
                         ", which would fit (.flatten(1) before the layer, where those belong together).");
  if (inner == columns)
    add_try(finding, "The second transposed fits: " + shape_text({rows, inner}) + " times " +
                         shape_text({columns, wanted}) + " gives " + shape_text({rows, wanted}) + ".");
  if (rows == wanted)
    add_try(finding, "The first transposed fits: " + shape_text({inner, rows}) + " times " +
                         shape_text({wanted, columns}) + " gives " + shape_text({inner, columns}) + ".");
  return true;
}

bool pairwise(std::string_view words, Finding& finding) {
  const Shape n = numbers_in(after(words, "size of tensor a"));
  if (n.size() < 3 || words.find("at non-singleton dimension") == std::string_view::npos) return false;
  if (n[0] == n[1] || n[0] == 1 || n[1] == 1)
    return contradicts(finding, "An operation element by element on " + text(n[0]) + " and " + text(n[1]) +
                                    " entries in dimension " + text(n[2]));
  finding.message = "Two tensors of an operation element by element have " + text(n[0]) + " and " + text(n[1]) +
                    " entries in dimension " + text(n[2]) + ", and neither is 1";
  add_try(finding,
          "Print both shapes before this line. What fits there: the same extent, or 1 (unsqueeze adds such a "
          "dimension); extents are compared from the last one backwards.");
  if (n[0] > 0 && n[1] > 0 && (n[0] - n[1] == 1 || n[1] - n[0] == 1))
    add_try(finding,
            "They differ by one: a token, a border or a last element that one side has and the other has not (shifted "
            "labels, an odd size halved and doubled).");
  return true;
}

bool view(std::string_view words, Finding& finding) {
  const std::optional<Shape> shape = list_after(words, "shape '");
  const std::optional<std::int64_t> size = number_after(words, "for input of size ");
  if (!shape || !size) return false;
  std::int64_t product = 1, open = 0;
  bool sound = true;
  for (const std::int64_t extent : *shape) {
    if (extent == -1)
      ++open;
    else if (extent <= 0 || product > (std::int64_t{1} << 40) / extent)
      sound = false;
    else
      product *= extent;
  }
  if (sound && (open == 0 ? product == *size : open == 1 && *size % product == 0))
    return contradicts(finding, "A view of " + text(*size) + " elements as " + shape_text(*shape));
  finding.message = "A tensor of " + text(*size) + " elements cannot be viewed as " + shape_text(*shape);
  if (!sound) return true;
  finding.message +=
      open != 0 ? ": " + text(*size) + " is no multiple of " + text(product) : ", which has " + text(product);
  const std::int64_t rest = shape->empty() || (*shape)[0] <= 0 ? 0 : product / (*shape)[0];
  if (open == 0 && rest != 0 && *size % rest == 0) {
    Shape fits = *shape;
    fits[0] = *size / rest;
    add_try(finding, "With " + shape_text(fits) +
                         " it fits; -1 as the first extent lets PyTorch compute it (a last batch that is smaller is "
                         "the usual reason).");
  }
  add_try(finding,
          "Compute the extents from the tensor itself, x.view(x.size(0), -1), instead of writing them down; print "
          "x.shape before this line.");
  return true;
}

bool channels(std::string_view words, Finding& finding) {
  const std::optional<Shape> weight = list_after(words, "weight of size "), input = list_after(words, "expected input");
  const std::optional<std::int64_t> wanted = number_after(words, "to have ");
  if (!input || !wanted || input->size() < 2) return false;
  const std::int64_t got = input->size() > 1 ? (*input)[1] : 0;
  if (got == *wanted)
    return contradicts(finding, "A convolution for " + text(*wanted) + " channels of " + shape_text(*input));
  finding.message = "A convolution" + (weight ? " with a weight of " + shape_text(*weight) : std::string()) +
                    " wants an input of " + text(*wanted) + " channels (dimension 1) and got " + shape_text(*input) +
                    ", which has " + text(got);
  if (input->size() == 4 && (*input)[3] == *wanted)
    add_try(finding, "The channels are last: x.permute(0, 3, 1, 2) gives " +
                         shape_text({(*input)[0], (*input)[3], (*input)[1], (*input)[2]}) + ", which fits.");
  else if (got == 1 && *wanted == 3)
    add_try(finding,
            "Grey pictures for a network of colour ones: x.expand(-1, 3, -1, -1) or a first layer of nn.Conv2d(1, …).");
  else if (got == 4 && *wanted == 3)
    add_try(finding, "Pictures with an alpha channel: image.convert(\"RGB\"), or x[:, :3].");
  add_try(finding, "Or build the layer for its input: in_channels=" + text(got) + ".");
  return true;
}

bool cat(std::string_view words, Finding& finding) {
  const std::optional<std::int64_t> dim = number_after(words, "except in dimension "),
                                    expected = number_after(words, "xpected size "),
                                    got = number_after(words, "but got size ");
  if (!dim) return false;
  if (expected && got && *expected == *got)
    return contradicts(finding, "torch.cat along dimension " + text(*dim) + " of tensors with " + text(*expected) +
                                    " and " + text(*got) + " entries in another");
  finding.message = "torch.cat along dimension " + text(*dim) + " got tensors whose other extents differ" +
                    (expected && got ? ": " + text(*expected) + " and " + text(*got) : std::string());
  add_try(
      finding,
      "All extents but that of dimension " + text(*dim) +
          " must be equal: pad or crop the smaller one (skip connections of odd sizes), or another dim= was meant.");
  return true;
}

bool batch(std::string_view words, Finding& finding) {
  const std::optional<std::int64_t> input = number_after(words, "Expected input batch_size ("),
                                    target = number_after(words, "target batch_size (");
  if (!input || !target) return false;
  if (*input == *target)
    return contradicts(finding, "A loss of " + text(*input) + " rows of scores and " + text(*target) + " targets");
  finding.message = "A loss got " + text(*input) + " rows of scores and " + text(*target) +
                    " targets; there must be one target for each row";
  add_try(
      finding,
      "Look at the .view or .reshape before the loss: a fixed number of features there changes the number of rows.");
  if (*target > 0 && *input > 0 && *input % *target == 0 && *input != *target)
    add_try(finding, "There are " + text(*input / *target) +
                         " rows for each target: the network was not flattened per sample (x.flatten(1)), or sequence "
                         "positions became rows.");
  return true;
}

// "(None, 256)" or "[None, 256]", as it was printed; empty: there is none.
std::string_view printed_shape(std::string_view words) {
  const std::size_t open = words.find_first_of("([");
  const std::size_t close = open == std::string_view::npos ? open : words.find_first_of(")]", open);
  return close == std::string_view::npos ? std::string_view() : words.substr(open, close - open + 1);
}

// Keras: 'Input 0 of layer "dense" is incompatible with the layer: expected axis -1 of input shape to have value 512, but received input with shape (None, 256)'
bool keras(std::string_view words, Finding& finding) {
  std::string_view rest = after(words, "is incompatible with the layer: "), layer = after(words, "of layer ");
  layer = layer.substr(0, layer.find(" is incompatible"));
  // "Input 0 is incompatible with layer model: expected shape=(None, 10), found shape=(None, 7)"
  if (rest.empty()) {
    layer = after(words, "is incompatible with layer ");
    rest = after(layer, ": ");
    layer = layer.substr(0, layer.find(": "));
  }
  if (rest.empty()) return false;
  const std::string_view received =
      printed_shape(after(rest, rest.find("ound shape=") != std::string_view::npos ? "ound shape=" : "eceived"));
  const std::string name = layer.empty() ? "of Keras" : std::string(layer);
  const std::optional<std::int64_t> axis = number_after(rest, "expected axis "),
                                    value = number_after(rest, "to have value ");
  const std::string got =
      received.empty() ? std::string("another input") : "an input of shape " + std::string(received);
  if (axis && value) {
    finding.message = "The layer " + name + " was built for " + text(*value) + " entries in " +
                      (*axis == -1 ? "the last dimension" : "dimension " + text(*axis)) + " and got " + got;
    const Shape n = numbers_in(received);
    add_try(finding, *axis == -1 && !n.empty()
                         ? "Bring the input to " + text(*value) +
                               " there, or build the layer (and what it was saved "
                               "with) for " +
                               text(n.back()) +
                               ": the number of features of the data and of the Input "
                               "must be one."
                         : "Bring the input to " + text(*value) + " there, or build the layer for what it gets.");
  } else if (rest.find("ndim") != std::string_view::npos) {
    const std::optional<std::int64_t> wanted = number_after(rest, "ndim="), found = number_after(rest, "found ndim=");
    finding.message = "The layer " + name + " wants an input of " +
                      (rest.find("min_ndim") != std::string_view::npos   ? "at least "
                       : rest.find("max_ndim") != std::string_view::npos ? "at most "
                                                                         : "") +
                      (wanted ? text(*wanted) : std::string("other")) + " dimensions and got " +
                      (found ? "one of " + text(*found) + (received.empty() ? "" : ", " + std::string(received)) : got);
    add_try(finding,
            "Add the dimension that is missing, most often the batch or the channels: x[None] or x[..., None] "
            "(tf.expand_dims); or take away what is too much (Flatten, tf.squeeze).");
  } else {
    const std::string_view wanted = printed_shape(after(rest, "expected shape="));
    finding.message = "The layer " + name + " refused its input" +
                      (wanted.empty() ? ": " + first_words(std::string(rest))
                                      : ": it wants the shape " + std::string(wanted) + " and got " + got);
  }
  add_try(finding, "model.summary() shows the shape that each layer wants; print x.shape before the call.");
  return true;
}

// "Float" of "torch.cuda.FloatTensor".
std::string_view plain_type(std::string_view type) {
  for (const std::string_view part : {"torch.", "cuda."}) {
    if (type.starts_with(part)) type.remove_prefix(part.size());
  }
  if (type.size() > 6 && type.ends_with("Tensor")) type.remove_suffix(6);
  return type;
}

bool is_whole_type(std::string_view type) {
  return type.find("Long") != std::string_view::npos || type.find("Int") != std::string_view::npos ||
         type.find("long") != std::string_view::npos;
}

// "one of the following scalar types: Long, Int; but got torch.FloatTensor instead", "tensors used as indices must be long, int, byte or bool tensors". False: it is about something else.
bool index_types(std::string_view words, Finding& finding) {
  std::string_view wanted = after(words, "following scalar types: ");
  wanted = wanted.substr(0, wanted.find(';'));
  std::string_view found = after(words, "but got ");
  found = plain_type(found.substr(0, found.find_first_of(" ;,")));
  if (words.find("tensors used as indices must be") != std::string_view::npos)
    wanted = "long, int, byte or bool", found = {};
  if (wanted.empty() || !is_whole_type(wanted)) return false;
  finding.message = "Types: indices must be of a whole-number type (" + std::string(wanted) + ")" +
                    (found.empty() ? std::string(", and got another") : ", and got " + std::string(found));
  add_try(finding,
          "Convert them where they are made, or at this line: ids = ids.long(). If their values are no whole numbers, "
          "this is not the tensor that was meant (inputs and labels changed round?).");
  return true;
}

void types(std::string_view words, Finding& finding) {
  if (index_types(words, finding)) return;
  std::string_view wanted = word_after(words, "expected scalar type "), found = word_after(words, "but found ");
  if (wanted.empty()) wanted = word_after(words, "Expected object of scalar type ");
  if (found.empty()) found = word_after(words, "but got scalar type ");
  if (wanted.empty()) {
    wanted = word_after(words, "but got ");
    found = word_after(words, "but got " + std::string(wanted) + " and ");
  }
  if (words.find(" type (") != std::string_view::npos) {
    const std::size_t first = words.find(" type (");
    wanted = words.substr(first + 7, words.find(')', first) - first - 7);
    const std::size_t second = words.find(" type (", first + 7);
    if (second != std::string_view::npos) found = words.substr(second + 7, words.find(')', second) - second - 7);
  }
  if (!wanted.empty() && wanted == found) {
    contradicts(finding, "An operation on operands of the types " + std::string(wanted) + " and " + std::string(found));
    return;
  }
  finding.message =
      "The types of an operation's operands do not match" +
      (wanted.empty() || found.empty() ? std::string() : ": " + std::string(wanted) + " and " + std::string(found));
  if (is_whole_type(wanted) && !is_whole_type(found) && words.find("xpected") != std::string_view::npos)
    return add_try(finding, std::string(wanted) + " is expected and " + std::string(found) +
                                " was given: indices and class numbers are whole numbers, x = x.long() (targets of "
                                "cross_entropy, ids of an embedding).");
  add_try(finding,
          "Bring them to one type: x = x.to(next(model.parameters()).dtype) for the input; .long() for indices and "
          "class numbers.");
  const auto is_one_of = [&](std::initializer_list<std::string_view> names) {
    const auto is_there = [&](std::string_view type) {
      type = plain_type(type);
      if (const std::size_t colons = type.rfind(':'); colons != std::string_view::npos) type.remove_prefix(colons + 1);
      return std::any_of(names.begin(), names.end(), [&](std::string_view name) {
        return std::equal(name.begin(), name.end(), type.begin(), type.end(),
                          [](char a, char b) { return a == b || a == b + ('a' - 'A'); });
      });
    };
    return std::pair(is_there(wanted), is_there(found));
  };
  const auto doubles = is_one_of({"double", "float64"});
  const auto halves = is_one_of({"half", "bfloat16", "float16", "float", "float32"});
  if (doubles.first || doubles.second)
    add_try(finding,
            "Double is float64: NumPy's arrays, and what .double() or a default type of float64 made. Make it float32 "
            "where it is made: .float(), dtype=np.float32. torch.autocast leaves float64 as it is.");
  else if (halves.first && halves.second)
    add_try(finding,
            "Half and Float together are the usual case of autocast left out: in products, convolutions and linear "
            "layers torch.autocast(\"cuda\") around the forward pass casts both to one type; else make all of it one.");
}

void no_kernel(std::string_view words, Finding& finding) {
  const std::string_view rest = after(words, "not implemented for '"), type = rest.substr(0, rest.find('\''));
  const bool on_host = words.find("cpu") != std::string_view::npos || words.find("CPU") != std::string_view::npos;
  finding.message =
      "PyTorch has no kernel of this operation for the type " + std::string(type) + (on_host ? " on the CPU" : "");
  add_try(finding, on_host
                       ? "Was it meant for the GPU? Move model and inputs there; on the CPU use float32 (or bfloat16)."
                       : "Bring the operand to a type that it has: .float() for integers and half types, .long() for "
                         "indices and class numbers.");
}

void devices(std::string_view words, Finding& finding) {
  const std::string_view pair = after(words, "two devices, ");
  std::string which;
  if (!pair.empty()) which = ": " + std::string(pair.substr(0, pair.find_first_of("!(")));
  const std::string_view argument = word_after(words, "argument for argument "),
                         method = word_after(words, "in method ");
  // "two devices, cuda:0 and cuda:1!"
  const std::string_view one = pair.substr(0, pair.find(' ')), other = after(pair, " and ");
  if (!pair.empty() && !one.empty() && other.substr(0, other.find_first_of("!( ")) == one) {
    contradicts(finding, "An operation on operands on " + std::string(one) + " and " + std::string(one));
    return;
  }
  finding.message = "The operands of an operation are not on one device" + which;
  // "Input type (torch.FloatTensor) and weight type (torch.cuda.FloatTensor) should be the same"
  const std::string_view input = after(words, "nput type ("), weight = after(words, "weight type (");
  if (!input.empty() && !weight.empty()) {
    const bool input_on_gpu = input.substr(0, input.find(')')).find("cuda") != std::string_view::npos;
    finding.message = std::string("Operands are not on one device: the input is on the ") +
                      (input_on_gpu ? "GPU" : "CPU") + " and the layer's weight on the " +
                      (input_on_gpu ? "CPU" : "GPU") + " (" + std::string(input.substr(0, input.find(')'))) + ", " +
                      std::string(weight.substr(0, weight.find(')'))) + ")";
    return add_try(finding, input_on_gpu
                                ? "The weight was left behind: model.to(device) before the loop; layers kept in a "
                                  "Python list move only as nn.ModuleList."
                                : "The input was left behind: x = x.to(device) before this line; .to() of a tensor "
                                  "returns the new one and leaves the old.");
  }
  if (!argument.empty())
    finding.message += "; argument `" + std::string(argument) + "`" +
                       (method.empty() ? "" : " of " + std::string(method)) + " is the one noticed";
  add_try(finding,
          "Move what was left behind: x = x.to(next(model.parameters()).device) for inputs, model.to(device) for the "
          "module; .to() of a tensor returns the new one and leaves the old.");
  add_try(finding,
          "Tensors made inside forward (torch.arange, torch.zeros) need device=x.device; tensors kept in a module move "
          "with it only as register_buffer or nn.Parameter.");
}

}  // namespace

void describe_operands(const Case& subject, Finding& finding) {
  const std::string& words = subject.statements().error.text;
  const Trouble trouble = trouble_of(words);
  bool told = true;
  const bool of_framework = subject.statements().error.kind == MessageKind::kOperandsShapes;
  if (of_framework && describe_framework_shapes(words, finding)) {
    // told
  } else if (trouble == Trouble::kDevice || words.find("object of device type") != std::string::npos) {
    finding.rule = rule_name::kDeviceMismatch;
    devices(words, finding);
  } else if (say_no_kernel(words) || trouble == Trouble::kDtype) {
    finding.rule = rule_name::kDtypeMismatch;
    say_no_kernel(words) ? no_kernel(words, finding) : types(words, finding);
  } else {
    finding.rule = rule_name::kShapeMismatch;
    told = keras(words, finding) || product(words, finding) || pairwise(words, finding) || view(words, finding) ||
           channels(words, finding) || cat(words, finding) || batch(words, finding);
  }
  if (!told) {
    finding.message = "An operation refused its operands: " + first_words(words);
    add_try(finding, "Print the shapes of what goes into this line.");
  }
  while (!finding.message.empty() && (finding.message.back() == '.' || finding.message.back() == ' '))
    finding.message.pop_back();
  finding.message += ". Memory is not the problem.";
  if (of_framework || subject.statements().error.kind == MessageKind::kOperandsKeras) return;
  add_try(finding, "faultline plan -- " + program_words(subject) +
                       " runs it without a GPU, and shows for each operand where it was made and what would fit.");
}

}  // namespace faultline
