// tensor/shape-mismatch, tensor/dtype-mismatch, tensor/device-mismatch, tensor/index-out-of-range: an operation of a dry run refused its operands because of their shapes, types, devices or values; which, from where, and what would fit.
#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>

#include "base/units.h"
#include "rules/calling_frame.h"
#include "rules/describe.h"
#include "rules/rule.h"
#include "rules/shape_mismatch/failed_op.h"
#include "rules/shape_mismatch/fit.h"
#include "rules/shape_mismatch/index_refused.h"
#include "rules/shape_mismatch/remedy.h"
#include "rules/shape_mismatch/words.h"
#include "trace/host_memory.h"

namespace faultline {
namespace {

constexpr std::size_t kOperandsShown = 6;
constexpr std::size_t kTriesShown = 3;

// The words decide; where they do not say, operands that the algebra refuses do.
Trouble judge_failure(const FailedOp& failed) {
  // A loss has no kernel for class numbers of a floating type, and says so in these words.
  if (say_no_kernel(failed.words) && family_of(bare_op(failed.op)) == Family::kClassLoss &&
      failed.operands.size() >= 2 && is_floating(failed.operands[1].dtype))
    return Trouble::kDtype;
  const Trouble trouble = trouble_of(failed.words);
  if (trouble != Trouble::kUnknown) return trouble;
  return fit_of(failed) == Fit::kNo ? Trouble::kShape : Trouble::kUnrelated;
}

std::string_view rule_for(Trouble trouble) {
  switch (trouble) {
    case Trouble::kDtype: return rule_name::kDtypeMismatch;
    case Trouble::kDevice: return rule_name::kDeviceMismatch;
    case Trouble::kIndex: return rule_name::kIndexOutOfRange;
    default: return rule_name::kShapeMismatch;
  }
}

// Frameworks have pools of the host's memory, too; a recording names them so.
std::string place_text(const Given& given, const Facts& facts) {
  if (given.on_host()) return "the CPU";
  const std::uint16_t index = facts.lifetimes.birth(given.allocation).device;
  for (const Device& device : facts.trace.devices) {
    if (device.index == index && is_host_memory(device.name)) return "the CPU";
  }
  return "cuda:" + std::to_string(index);
}

std::string about(Trouble trouble) {
  switch (trouble) {
    case Trouble::kDtype: return "their types do not match";
    case Trouble::kDevice: return "they are not on one device";
    default: return "their shapes do not fit";
  }
}

// What tells it from the others, in the words of the trouble: its type with its shape, and where it is.
std::string given_text(const Given& given, Trouble trouble, const Facts& facts) {
  std::string text = given.argument.empty() ? "" : std::string(given.argument) + " ";
  text += tensor_text(given.dtype, given.shape);
  if (trouble == Trouble::kDevice) text += " on " + place_text(given, facts);
  if (!given.kind.empty()) text += " (`" + std::string(given.name) + "`)";
  return text;
}

// Where types are the trouble, those of the rarer type come first: they are what differs.
std::vector<std::size_t> order_of(const FailedOp& failed, Trouble trouble) {
  std::vector<std::size_t> order(failed.operands.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (trouble != Trouble::kDtype) return order;
  const auto alike = [&](std::size_t at) {
    return std::count_if(failed.operands.begin(), failed.operands.end(),
                         [&](const Given& other) { return other.dtype == failed.operands[at].dtype; });
  };
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return alike(a) < alike(b); });
  return order;
}

// "The layer `Head.proj` is float32 and its input `x` is bfloat16[8,256]"; empty where it is not a layer's weight against its input.
std::string layer_text(const FailedOp& failed) {
  const Family family = family_of(bare_op(failed.op));
  const std::optional<Layer> layer =
      family == Family::kProduct || family == Family::kConvolution ? layer_of(failed) : std::nullopt;
  if (!layer) return {};
  const Given& input = failed.operands[layer->input];
  return "The layer `" + layer->name + "` is " + std::string(layer->dtype) + " and its input " +
         (input.kind.empty() ? "" : "`" + std::string(input.name) + "` ") + "is " +
         tensor_text(input.dtype, input.shape) + ", which " + std::string(failed.op) + " refused";
}

std::string operands_text(const FailedOp& failed, Trouble trouble, const Facts& facts) {
  std::string text;
  const std::vector<std::size_t> order = order_of(failed, trouble);
  for (std::size_t at = 0; at < order.size() && at < kOperandsShown; ++at) {
    const bool last = at + 1 == order.size();
    text += (at == 0 ? "" : last ? " and " : ", ") + given_text(failed.operands[order[at]], trouble, facts);
  }
  if (failed.operands.size() > kOperandsShown)
    text += " and " + std::to_string(failed.operands.size() - kOperandsShown) + " more";
  return text;
}

// Where it comes from: with its place, "…, made by aten::relu at model.py:20".
Related origin_of(const Facts& facts, const FailedOp& failed, std::size_t index) {
  const Given& given = failed.operands[index];
  std::string text = (given.argument.empty() ? "operand " + std::to_string(index + 1) : std::string(given.argument)) +
                     ": " + tensor_text(given.dtype, given.shape);
  if (given.whole != given.shape) text += ", a view of " + shape_text(given.whole);
  if (!given.name.empty())
    text += ", " + std::string(given.kind) + (given.kind.empty() ? "" : " ") + "`" + std::string(given.name) + "`";
  text += ", on " + place_text(given, facts);
  if (!given.made_by.empty() || given.made_at.value != 0) text += ", made";
  if (!given.made_by.empty()) text += " by " + std::string(given.made_by);
  return {"operand", std::move(text), 0, location_of(facts, given.made_at)};
}

std::vector<std::string> index_remedies(const FailedOp& failed) {
  const std::string_view op = bare_op(failed.op);
  if (op.starts_with("nll_loss"))
    return {
        "Labels are numbered from 0: one that is the number of classes or more needs an output more in the last layer, "
        "or is counted from 1.",
        "A label that stands for padding is told to the loss: ignore_index=…"};
  if (op.find("embedding") != std::string_view::npos)
    return {
        "Give the table a row for every index (num_embeddings, resize_token_embeddings after tokens were added), or "
        "find why the data has an index beyond it: another tokenizer, padding with −1, positions beyond the longest "
        "length."};
  return {"Find where the index is made: assert index.min() >= 0 and index.max() < size before this line."};
}

Finding describe(const FailedOp& failed, Trouble trouble, std::uint64_t times, const Facts& facts) {
  const bool from_user = facts.stacks.user(failed.stack).value != 0;
  // A library that tries an operation and catches the error knows what it does.
  // After a device-side assert a GPU does nothing more, whoever catches the error.
  const bool by_index = trouble == Trouble::kIndex;
  const Severity severity = failed.is_last || by_index ? Severity::kError
                            : from_user                ? Severity::kWarning
                                                       : Severity::kNote;
  Finding finding = finding_at(facts, rule_for(trouble), severity, Confidence::kProved, failed.device, failed.stack);
  finding.location.op = failed.op;
  finding.count = times;
  const std::string raised = times == 1 ? "" : ", " + format_count(times) + " times";
  const std::string layer = trouble == Trouble::kDtype ? layer_text(failed) : "";
  finding.message =
      (!layer.empty() ? layer
                      : std::string(failed.op) + " refused " +
                            (failed.operands.empty() ? "its operands" : operands_text(failed, trouble, facts))) +
      raised + ": " +
      (failed.operands.size() == 1 && trouble == Trouble::kShape ? "its shape does not fit" : about(trouble)) +
      (failed.is_last ? ". Nothing was computed after it." : ". The program went on after the error.");
  if (by_index)
    finding.message = std::string(failed.op) + " got " + operands_text(failed, trouble, facts) + raised + ": " +
                      std::string(index_words(failed.words)) +
                      ". On a GPU a check in the kernel stops the program here or at a later line, with \"device-side "
                      "assert triggered\"; nothing runs on the GPU after it.";
  else if (!failed.words.empty())
    finding.evidence.push_back({"error", first_words(failed.words)});
  if (const std::string inside = library_detail(facts, calling_frame(facts.trace, failed.stack)); !inside.empty())
    finding.evidence.push_back({"raised", inside});
  const std::vector<std::size_t> order = order_of(failed, trouble);
  for (std::size_t at = 0; at < order.size() && at < kOperandsShown; ++at) {
    finding.related.push_back(origin_of(facts, failed, order[at]));
  }
  std::vector<std::string> remedies = trouble == Trouble::kDtype    ? dtype_remedies(failed, facts)
                                      : trouble == Trouble::kDevice ? device_remedies(failed, facts)
                                      : by_index                    ? index_remedies(failed)
                                                                    : shape_remedies(failed, facts);
  if (remedies.size() > kTriesShown) remedies.resize(kTriesShown);
  for (std::string& what : remedies) add_try(finding, std::move(what));
  finding.fingerprint = fingerprint(finding.rule, finding.location, failed.op);
  return finding;
}

}  // namespace

void judge_shape_mismatch(Case& subject, std::vector<Finding>& findings, std::vector<NotJudged>&) {
  const Facts& facts = subject.facts();
  // Failures of one operation at one line are one finding, told by the last of them; what the program died of comes first.
  struct Group {
    const FailedOp* last = nullptr;
    Trouble trouble = Trouble::kUnknown;
    std::uint64_t times = 0;
  };
  std::map<std::tuple<FrameId, std::string_view, Trouble>, Group> by_line;
  const std::vector<FailedOp> failures = failed_operations(
      subject.trace(), facts.lifetimes, subject.statements().planned_to_end || subject.statements().ending.well());
  for (const FailedOp& failed : failures) {
    if (std::optional<Finding> index = index_refused(failed, facts)) {
      const bool known = std::any_of(findings.begin(), findings.end(),
                                     [&](const Finding& other) { return other.fingerprint == index->fingerprint; });
      if (!known) findings.push_back(std::move(*index));
      continue;
    }
    const Trouble trouble = judge_failure(failed);
    if (trouble == Trouble::kUnrelated) continue;
    StackId line = facts.stacks.user(failed.stack);
    if (line.value == 0) line = failed.stack;
    Group& group = by_line[{subject.trace().stacks.frame_id(line), failed.op, trouble}];
    group.last = &failed;
    group.trouble = trouble;
    ++group.times;
  }
  std::vector<Group> groups;
  groups.reserve(by_line.size());
  for (const auto& [line, group] : by_line) groups.push_back(group);
  std::sort(groups.begin(), groups.end(), [](const Group& a, const Group& b) { return a.last->end > b.last->end; });
  for (const Group& group : groups) findings.push_back(describe(*group.last, group.trouble, group.times, facts));
}

}  // namespace faultline
