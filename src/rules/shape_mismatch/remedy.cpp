#include "rules/shape_mismatch/remedy.h"

#include <algorithm>

#include "rules/shape_mismatch/fit.h"
#include "rules/shape_mismatch/words.h"

namespace faultline {
namespace {

// The operand that holds indices or class numbers; operands.size() where there is none.
std::size_t index_operand(std::string_view bare, std::size_t count) {
  const Family family = family_of(bare);
  const bool has = family == Family::kEmbedding || family == Family::kClassLoss || bare == "gather" ||
                   bare == "index_select" || bare.starts_with("scatter");
  return has && count > 1 ? 1 : count;
}

bool words_ask_for_integers(std::string_view words) {
  return words.find("Long") != std::string_view::npos || words.find("int64") != std::string_view::npos ||
         words.find("indices must be") != std::string_view::npos || say_no_kernel(words);
}

std::string cast_text(std::string_view dtype) {
  if (dtype == "float32") return "`.float()`";
  if (dtype == "float16") return "`.half()`";
  return "`.to(torch." + std::string(dtype) + ")`";
}

// Made when its module was, and still there.
bool is_of_module(const Given& given, const Facts& facts) {
  if (given.kind == "parameter" || given.kind == "buffer") return true;
  return given.kind.empty() && !given.name.empty() && facts.stacks.has(given.made_at, kConstructs);
}

// "net.fc" of "net.fc.weight".
std::string module_of(const Given& given) {
  return std::string(given.kind.empty() ? given.name : given.name.substr(0, given.name.rfind('.')));
}

}  // namespace

std::string operand_text(const FailedOp& failed, std::size_t index) {
  const Given& given = failed.operands[index];
  return (given.argument.empty() ? "operand " + std::to_string(index + 1) : std::string(given.argument)) + " (" +
         (given.name.empty() || given.kind.empty() ? "" : "`" + std::string(given.name) + "`, ") +
         tensor_text(given.dtype, given.shape) + ")";
}

std::string call_text(std::string_view method, const std::vector<std::size_t>& dims) {
  std::string text(method);
  text += "(";
  for (std::size_t at = 0; at < dims.size(); ++at) text += (at == 0 ? "" : ", ") + std::to_string(dims[at]);
  return text + ")";
}

bool passes_through(const Trace& trace, StackId stack, std::string_view file_ending) {
  for (; stack.value != 0; stack = trace.stacks.parent(stack)) {
    if (trace.strings.at(trace.stacks.frame(stack).file).ends_with(file_ending)) return true;
  }
  return false;
}

std::vector<std::string> shape_remedies(const FailedOp& failed, const Facts& facts) {
  if (!failed.has_all_operands || failed.operands.empty()) return {};
  switch (family_of(bare_op(failed.op))) {
    case Family::kProduct: return product_remedies(failed, facts);
    case Family::kPairwise: return pairwise_remedies(failed);
    case Family::kSameShape: return same_shape_remedies(failed);
    case Family::kCat: return cat_remedies(failed);
    case Family::kStack: return stack_remedies(failed);
    case Family::kView: return view_remedies(failed);
    case Family::kConvolution: return convolution_remedies(failed);
    case Family::kLayerNorm:
    case Family::kBatchNorm: return norm_remedies(failed);
    case Family::kClassLoss: return class_loss_remedies(failed);
    default: return {};
  }
}

// In products and convolutions it casts float32, float16 and bfloat16 to one of the half types; it leaves float64 as it is.
static bool autocast_casts(const std::vector<std::string_view>& types) {
  return std::all_of(types.begin(), types.end(), [](std::string_view type) {
    return type == "float32" || type == "float16" || type == "bfloat16";
  });
}

std::vector<std::string> dtype_remedies(const FailedOp& failed, const Facts& facts) {
  const std::string_view bare = bare_op(failed.op);
  const Family family = family_of(bare);
  const std::vector<Given>& operands = failed.operands;
  if (!failed.has_all_operands) return {};
  if (const std::size_t index = index_operand(bare, operands.size()); index < operands.size()) {
    if (is_integer(operands[index].dtype) || !words_ask_for_integers(failed.words)) return {};
    if (family == Family::kClassLoss && !class_loss_fits(operands[0].shape, operands[index].shape, false)) return {};
    return {"Make " + operand_text(failed, index) + " integers with `.long()`: it holds " +
            (family == Family::kClassLoss ? "class numbers" : "indices") + "."};
  }
  if ((family != Family::kProduct && family != Family::kConvolution) || fit_of(failed) == Fit::kNo) return {};
  // Products and convolutions take one floating type.
  std::vector<std::string_view> types;
  for (const Given& given : operands) {
    if (!is_floating(given.dtype)) return {};
    if (std::find(types.begin(), types.end(), given.dtype) == types.end()) types.push_back(given.dtype);
  }
  if (types.size() != 2) return {};
  // float64 comes from NumPy or from a Python list, hardly ever from a wish; else a layer's weight says what its input should be.
  std::string_view wanted;
  if (types[0] == "float64" || types[1] == "float64") {
    wanted = types[0] == "float64" ? types[1] : types[0];
  } else if (family == Family::kConvolution ||
             passes_through(facts.trace, failed.stack, "torch/nn/modules/linear.py")) {
    wanted = operands[family == Family::kConvolution ? 1 : first_factor(bare) + 1].dtype;
  }
  if (wanted.empty()) {
    return {"Give all operands one type, " + std::string(types[0]) + " or " + std::string(types[1]) +
            ", for example with `.to(other.dtype)`" +
            (autocast_casts(types) ? "; or run the code under `torch.autocast(\"cuda\")`, which does it." : ".")};
  }
  std::string which;
  for (std::size_t at = 0; at < operands.size(); ++at) {
    if (operands[at].dtype != wanted) which += (which.empty() ? "" : " and ") + operand_text(failed, at);
  }
  std::vector<std::string> remedies = {"Cast " + which + " with " + cast_text(wanted) + ": the other operands are " +
                                       std::string(wanted) + "."};
  const std::optional<Layer> layer = layer_of(failed);
  if (!layer || failed.operands[layer->input].dtype == "float64") return remedies;
  const std::string as_input = std::string(failed.operands[layer->input].dtype) + " as its input is, with ";
  // its weight was made so, and is mended there
  if (layer->dtype == "float64")
    return {"Make the layer `" + layer->name + "` " + as_input + cast_text(wanted) +
            " where it is made: it is float64, from a `.double()` or a default type of float64. torch.autocast leaves "
            "float64 as it is."};
  remedies.push_back("Or make the layer `" + layer->name + "` " + as_input + "`.to(torch." +
                     std::string(failed.operands[layer->input].dtype) + ")`.");
  if (autocast_casts(types))
    remedies.emplace_back("Or call the model under `torch.autocast(\"cuda\")`, which casts both to one type.");
  return remedies;
}

std::vector<std::string> device_remedies(const FailedOp& failed, const Facts& facts) {
  if (!failed.has_all_operands || fit_of(failed) == Fit::kNo) return {};
  std::vector<std::size_t> strays;
  bool any_on_device = false;
  for (std::size_t at = 0; at < failed.operands.size(); ++at) {
    any_on_device |= !failed.operands[at].on_host();
    if (failed.operands[at].on_host()) strays.push_back(at);
  }
  if (!any_on_device || strays.empty()) return {};
  // A number on the host may go with tensors on the device; where there is more than numbers, they are not what was refused.
  const auto is_number = [&](std::size_t at) { return failed.operands[at].shape.empty(); };
  if (!std::all_of(strays.begin(), strays.end(), is_number)) std::erase_if(strays, is_number);
  std::vector<std::string> remedies;
  std::string which, of_modules;
  const auto append = [](std::string& list, const std::string& one) { list += (list.empty() ? "" : " and ") + one; };
  bool all_of_modules = true;
  for (const std::size_t at : strays) {
    const Given& given = failed.operands[at];
    if (given.kind == "attribute") {
      const std::string attribute(given.name.substr(given.name.rfind('.') + 1));
      remedies.push_back("`" + std::string(given.name) +
                         "` is a plain attribute of its module, which `.to()` and `.cuda()` leave where it is: make it "
                         "a buffer, `self.register_buffer(\"" +
                         attribute + "\", …)` in place of `self." + attribute + " = …`, and it moves with the module.");
      continue;
    }
    append(which, operand_text(failed, at));
    all_of_modules &= is_of_module(given, facts);
    if (of_modules.empty() && is_of_module(given, facts)) of_modules = module_of(given);
  }
  if (which.empty()) return remedies;
  const std::string is = strays.size() - remedies.size() == 1 ? " is" : " are";
  remedies.push_back(
      all_of_modules ? "Move the module `" + of_modules + "` to the device with `.to(device)`: " + which + is +
                           " still on the CPU."
                     : "Move " + which + " to the device with `.to(device)`:" + (is == " is" ? " it is" : " they are") +
                           " on the CPU, other operands are not.");
  return remedies;
}

}  // namespace faultline
