// tensor/broadcast-blowup: shapes that were meant to match broadcast against each other, (N,1) against (N,), and give N×N.
#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include "base/hash.h"
#include "base/units.h"
#include "rules/broadcast_blowup/large_result.h"
#include "rules/calling_frame.h"
#include "rules/describe.h"
#include "rules/rule.h"
#include "rules/shapes.h"

namespace faultline {
namespace {

// A result is worth speaking of from here on. A loss is not weighed: over pairs it is wrong at any size.
constexpr std::uint64_t kLeastBytes = kMiB;
constexpr std::uint64_t kLeastPercentOfPeak = 1;
constexpr std::uint64_t kLargeBytes = 64 * kMiB;

bool any_of(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

// Compares an input with its target, element by element.
bool is_elementwise_loss(std::string_view bare) {
  return any_of(bare, {"mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy",
                       "binary_cross_entropy_with_logits", "soft_margin_loss", "poisson_nll_loss"});
}

// Order comparisons of one against all are how masks are written.
bool combines_values(std::string_view bare) {
  return any_of(bare, {"add", "sub", "rsub", "mul", "div", "eq", "ne", "pow", "maximum", "minimum"});
}

// (…, N, 1) against (…, N): without the last 1 they are the same.
bool is_one_squeeze_away(const Shape& longer, const Shape& shorter) {
  return longer.size() == shorter.size() + 1 && longer.back() == 1 && !shorter.empty() && shorter.back() >= 2 &&
         std::equal(shorter.begin(), shorter.end(), longer.begin());
}

struct Blowup {
  bool is_loss = false;
  bool was_expanded = false;     // told from what is alive: the loss function expands its operands before it computes
  std::array<Operand, 2> given;  // as the program wrote them
  std::size_t longer = 0;        // which operand has the extra dimension
  Shape meant;                   // what both have without it
  Shape result;
  std::uint64_t result_bytes = 0;
  std::uint64_t meant_bytes = 0;
};

// Where tensors of a shape and type were made. A view has the memory of another shape, so an operand whose shape some live allocation was made
// with is (nearly always) that tensor, while x[:, None] of a vector leaves no such trace: that one is written on purpose.
class Makers {
 public:
  explicit Makers(const Facts& facts, std::uint16_t device) : facts_(facts) {
    for (const Event& event : facts.trace.events) {
      if (event.kind != EventKind::kAlloc || event.extra == 0 || event.device != device ||
          facts.trace.heaps[event.heap.index()].kind == HeapKind::kDriver)
        continue;
      const Tensor& tensor = facts.trace.tensors.at(TensorId(event.extra));
      by_tensor_[tensor_text(facts.trace.strings.at(tensor.dtype), tensor.shape)].push_back(event.allocation);
    }
  }

  // The youngest such tensor alive at the event.
  AllocationId alive(std::string_view dtype, const Shape& shape, std::uint32_t event) const {
    const auto found = by_tensor_.find(tensor_text(dtype, shape));
    if (found == by_tensor_.end()) return {};
    const std::vector<AllocationId>& made = found->second;
    const auto born_before = [&](AllocationId id, std::uint32_t limit) { return facts_.lifetimes.of(id).born < limit; };
    auto at = std::lower_bound(made.begin(), made.end(), event, born_before);
    for (std::size_t looked_at = 0; at != made.begin() && looked_at < kMostLookedAt; ++looked_at) {
      if (facts_.lifetimes.of(*--at).alive_at(event)) return *at;
    }
    return {};
  }

 private:
  static constexpr std::size_t kMostLookedAt = 4096;
  const Facts& facts_;
  HashMap<std::string, std::vector<AllocationId>> by_tensor_;  // each in the order of birth
};

// F.l1_loss and its like are written in Python, with plain subtractions inside.
bool is_in_loss_function(const Facts& facts, StackId stack) {
  const StackId inner = calling_frame(facts.trace, stack);
  if (inner.value == 0) return false;
  const Frame& frame = facts.trace.stacks.frame(inner);
  return facts.trace.strings.at(frame.file).ends_with("torch/nn/functional.py") &&
         is_elementwise_loss(facts.trace.strings.at(frame.function));
}

enum class Expanded : std::uint8_t { kNo, kWhole, kAsViews };  // (N, N) with (N, N); (N, 1) with (1, N)

Expanded expanded_shapes(const Shape& a, const Shape& b) {
  if (a.size() != 2 || b.size() != 2) return Expanded::kNo;
  const std::int64_t n = std::max(a[0], a[1]);
  if (n < 2) return Expanded::kNo;
  if (a == b) return a == Shape{n, n} ? Expanded::kWhole : Expanded::kNo;
  return (a == Shape{n, 1} && b == Shape{1, n}) || (a == Shape{1, n} && b == Shape{n, 1}) ? Expanded::kAsViews
                                                                                          : Expanded::kNo;
}

// Losses expand both operands to one shape before they compute: (N, N) against (N, N) may be all that is left of (N, 1) against (N,). What is alive
// tells: both of these were made so, and nothing was made with the shape that the loss sees.
std::optional<std::array<Operand, 2>> before_expansion(const Operand& a, const Operand& b, const Makers& makers,
                                                       std::uint32_t event) {
  const Expanded expanded = expanded_shapes(a.shape, b.shape);
  if (expanded == Expanded::kNo) return std::nullopt;
  const std::int64_t n = std::max(a.shape[0], a.shape[1]);
  const auto made = [&](std::string_view dtype, const Shape& shape) {
    return makers.alive(dtype, shape, event).value != 0;
  };
  for (const auto& [column, row] : {std::pair(a.dtype, b.dtype), std::pair(b.dtype, a.dtype)}) {
    if (!made(column, {n, 1}) || !made(row, {n}) || made(row, {1, n})) continue;
    if (expanded == Expanded::kWhole && (made(column, {n, n}) || made(row, {n, n}))) continue;
    return std::array<Operand, 2>{Operand{{n, 1}, column, false}, Operand{{n}, row, false}};
  }
  return std::nullopt;
}

// The two operands, where their shapes are worth a second look: they are of a loss or of an operation on values, and on the device.
std::optional<std::array<Operand, 2>> candidate_of(const Trace& trace, const Tensor& tensor) {
  const std::string_view bare = bare_op(trace.strings.at(tensor.op));
  const bool on_values = combines_values(bare);
  if (!on_values && !is_elementwise_loss(bare)) return std::nullopt;
  const auto operands = parse_operands(trace.strings.at(tensor.operands));
  if (!operands || operands->size() < 2 || (on_values && operands->size() != 2)) return std::nullopt;
  const Operand& a = (*operands)[0];
  const Operand& b = (*operands)[1];
  if (a.on_host || b.on_host) return std::nullopt;
  if (expanded_shapes(a.shape, b.shape) == Expanded::kNo && !is_one_squeeze_away(a.shape, b.shape) &&
      !is_one_squeeze_away(b.shape, a.shape))
    return std::nullopt;
  return std::array<Operand, 2>{a, b};
}

std::optional<Blowup> blowup_of(const Facts& facts, std::uint32_t index, const std::array<Operand, 2>& operands,
                                const Makers& makers) {
  const Event& event = facts.trace.events[index];
  const Tensor& tensor = facts.trace.tensors.at(TensorId(event.extra));
  Blowup blowup;
  blowup.is_loss =
      is_elementwise_loss(bare_op(facts.trace.strings.at(tensor.op))) || is_in_loss_function(facts, event.stack);
  blowup.given = operands;
  if (operands[0].shape.size() == operands[1].shape.size()) {
    const auto written = blowup.is_loss ? before_expansion(operands[0], operands[1], makers, index) : std::nullopt;
    if (!written) return std::nullopt;
    blowup.given = *written;
    blowup.was_expanded = true;
  }
  blowup.longer = blowup.given[0].shape.size() > blowup.given[1].shape.size() ? 0 : 1;
  blowup.meant = blowup.given[1 - blowup.longer].shape;
  const std::optional<Shape> result = broadcast(blowup.given[0].shape, blowup.given[1].shape);
  const std::string_view dtype = blowup.is_loss ? blowup.given[0].dtype : facts.trace.strings.at(tensor.dtype);
  if (!result || (!blowup.is_loss && tensor.shape != *result)) return std::nullopt;
  const std::optional<std::uint64_t> result_bytes = size_of(dtype, *result), meant_bytes = size_of(dtype, blowup.meant);
  if (!result_bytes || !meant_bytes || *result_bytes <= *meant_bytes) return std::nullopt;
  blowup.result = *result;
  blowup.result_bytes = *result_bytes;
  blowup.meant_bytes = *meant_bytes;
  return blowup;
}

struct Group {
  Blowup worst;
  const Event* event = nullptr;      // of the worst
  std::array<AllocationId, 2> made;  // its operands, where known
  std::uint64_t times = 0;
  std::uint64_t alive_bytes = 0;  // beyond what was meant, at the moment that is looked at
};

std::string origin(const Facts& facts, const Operand& operand, AllocationId made) {
  std::string text = tensor_text(operand.dtype, operand.shape);
  if (made.value == 0) return text;
  const Event& birth = facts.lifetimes.birth(made);
  const std::string_view op = facts.trace.strings.at(facts.trace.tensors.at(TensorId(birth.extra)).op);
  if (!op.empty()) text += ", made by " + std::string(op);
  if (birth.stack.value != 0)
    text += (op.empty() ? ", made at " : " at ") + short_place(location_of(facts, birth.stack));
  return text;
}

Finding describe(const Facts& facts, const Group& group) {
  const Blowup& blowup = group.worst;
  const Tensor& tensor = facts.trace.tensors.at(TensorId(group.event->extra));
  const std::array<Operand, 2>& operands = blowup.given;
  const std::string op(facts.trace.strings.at(tensor.op));
  const std::string longer = tensor_text(operands[blowup.longer].dtype, operands[blowup.longer].shape);
  const Confidence confidence = blowup.is_loss && !blowup.was_expanded ? Confidence::kProved : Confidence::kLikely;
  Finding finding = finding_at(facts, rule_name::kBroadcastBlowup, Severity::kWarning, confidence, group.event->device,
                               group.event->stack);
  finding.location.op = op;
  finding.bytes = blowup.result_bytes;
  finding.count = group.times;
  const std::string shapes = op + " of " + tensor_text(operands[0].dtype, operands[0].shape) + " and " +
                             tensor_text(operands[1].dtype, operands[1].shape);
  const std::uint64_t pairs = *element_count(blowup.result), meant = *element_count(blowup.meant);
  if (blowup.is_loss) {
    finding.message = shapes + " compares each element with each: the loss is taken over " + format_count(pairs) +
                      " pairs, not over " + format_count(meant) + " elements, and is a wrong number.";
  } else {
    finding.message = shapes + " pairs each element with each: the result is " + shape_text(blowup.result) + ", " +
                      format_bytes(blowup.result_bytes) + ", where element by element it is " +
                      shape_text(blowup.meant) + ", " + format_bytes(blowup.meant_bytes) + ".";
  }
  finding.memory = "Shapes are compared from the last dimension: the 1 of " +
                   shape_text(operands[blowup.longer].shape) + " goes with all of " +
                   shape_text(operands[1 - blowup.longer].shape) + ". Without that 1 both are " +
                   shape_text(blowup.meant) + ".";
  finding.evidence = {
      {"result_bytes", static_cast<std::int64_t>(blowup.result_bytes)},
      {"meant_bytes", static_cast<std::int64_t>(blowup.meant_bytes)},
      {"times_larger", static_cast<std::int64_t>(blowup.result_bytes / std::max<std::uint64_t>(blowup.meant_bytes, 1))},
      {"operand_1", origin(facts, operands[0], group.made[0])},
      {"operand_2", origin(facts, operands[1], group.made[1])}};
  if (const std::string inside = library_detail(facts, calling_frame(facts.trace, group.event->stack)); !inside.empty())
    finding.evidence.push_back({"computed", inside});
  finding.tries.push_back({"Squeeze " + longer +
                               " with `.squeeze(-1)`, or give the other `.unsqueeze(-1)`: the result then has " +
                               format_count(meant) + " elements, " + format_bytes(blowup.meant_bytes) + ".",
                           std::nullopt, group.alive_bytes});
  finding.fingerprint = fingerprint(finding.rule, finding.location, op);
  return finding;
}

}  // namespace

void judge_broadcast_blowup(Case& subject, std::vector<Finding>& findings, std::vector<NotJudged>&) {
  const Facts& facts = subject.facts();
  const Trace& trace = subject.trace();
  for (std::size_t slot = 0; slot < facts.usage.size(); ++slot) {
    const std::uint64_t peak = facts.usage[slot].peak_allocated.allocated;
    std::optional<Makers> makers;
    std::vector<bool> ordinary(trace.tensors.size());
    std::map<std::tuple<FrameId, StringId>, Group> groups;
    for (std::uint32_t index = 0; index < trace.events.size(); ++index) {
      const Event& event = trace.events[index];
      if (event.kind != EventKind::kAlloc || event.extra == 0 || event.device != facts.usage[slot].device ||
          event.stack.value == 0)
        continue;
      if (facts.stacks.user(event.stack).value == 0 ||
          (facts.stacks.roles(event.stack) & (kInBackward | kInOptimizer | kConstructs)))
        continue;
      if (ordinary[event.extra]) continue;
      const auto operands = candidate_of(trace, trace.tensors.at(TensorId(event.extra)));
      ordinary[event.extra] = !operands;
      if (!operands) continue;
      if (!makers) makers.emplace(facts, facts.usage[slot].device);
      const std::optional<Blowup> blowup = blowup_of(facts, index, *operands, *makers);
      if (!blowup) continue;
      const bool large =
          blowup->result_bytes >= kLargeBytes ||
          (blowup->result_bytes >= kLeastBytes && blowup->result_bytes >= peak / 100 * kLeastPercentOfPeak);
      if (!blowup->is_loss && !large) continue;
      const std::array<Operand, 2>& given = blowup->given;
      const std::array<AllocationId, 2> made = {makers->alive(given[0].dtype, given[0].shape, index),
                                                makers->alive(given[1].dtype, given[1].shape, index)};
      if (!blowup->is_loss && (made[0].value == 0 || made[1].value == 0)) continue;
      Group& group =
          groups[{trace.stacks.frame_id(facts.stacks.user(event.stack)), trace.tensors.at(TensorId(event.extra)).op}];
      ++group.times;
      if (!blowup->is_loss && facts.lifetimes.of(event.allocation).alive_at(facts.focus(slot).event))
        group.alive_bytes += blowup->result_bytes - blowup->meant_bytes;
      if (group.event != nullptr && blowup->result_bytes <= group.worst.result_bytes) continue;
      group.worst = *blowup;
      group.event = &event;
      group.made = made;
    }
    for (const auto& [line, group] : groups) findings.push_back(describe(facts, group));
  }
  const auto first = static_cast<std::ptrdiff_t>(findings.size());
  judge_large_results(subject, findings);
  // a line whose shapes were not meant so has been told
  findings.erase(std::remove_if(findings.begin() + first, findings.end(),
                                [&](const Finding& large) {
                                  return std::any_of(
                                      findings.begin(), findings.begin() + first, [&](const Finding& other) {
                                        return other.rule == large.rule && other.location.file == large.location.file &&
                                               other.location.line == large.location.line;
                                      });
                                }),
                 findings.end());
}

}  // namespace faultline
