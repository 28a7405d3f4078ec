#include "rules/broadcast_blowup/large_result.h"

#include <algorithm>
#include <bit>
#include <optional>

#include "base/units.h"
#include "fmt/format.h"
#include "rules/describe.h"
#include "rules/shapes.h"
#include "sources/rule_names.h"

namespace faultline {
namespace {

constexpr std::uint64_t kManyTimes = 4;            // larger than all that it is made of
constexpr std::uint64_t kPartOfDevice = 4;         // a result of a fourth of the GPU
constexpr std::uint64_t kProductPartOfDevice = 2;  // products of matrices are often meant to be large

bool is_one_of(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

enum class Way : std::uint8_t { kElementwise, kProduct, kCopies, kOneHot };

std::optional<Way> way_of(std::string_view bare) {
  if (is_pairwise(bare) || is_one_of(bare, {"where", "masked_fill", "addcmul", "addcdiv", "lerp"}))
    return Way::kElementwise;
  if (is_one_of(bare, {"mm", "bmm", "addmm", "baddbmm", "addbmm", "addr", "ger", "outer", "kron", "_cdist_forward"}))
    return Way::kProduct;
  if (is_one_of(bare, {"clone", "contiguous", "copy", "_to_copy", "repeat", "expand_copy", "index_select"}))
    return Way::kCopies;
  if (bare == "one_hot") return Way::kOneHot;
  return std::nullopt;
}

// What was asked for, made or not.
struct Wanted {
  Way way = Way::kElementwise;
  std::string op;
  std::vector<Operand> operands;
  std::string_view dtype;
  Shape shape;
  std::uint64_t bytes = 0, given_bytes = 0;
};

std::optional<Wanted> wanted_of(const Trace& trace, TensorId id, std::uint64_t capacity_bytes) {
  const Tensor& tensor = trace.tensors.at(id);
  Wanted wanted;
  wanted.op = trace.strings.at(tensor.op);
  const std::optional<Way> way = way_of(bare_op(wanted.op));
  auto operands = parse_operands(trace.strings.at(tensor.operands));
  wanted.dtype = trace.strings.at(tensor.dtype);
  wanted.shape = tensor.shape;
  const std::optional<std::uint64_t> bytes = size_of(wanted.dtype, wanted.shape);
  if (!way || !operands || operands->empty() || !bytes) return std::nullopt;
  wanted.way = *way;
  wanted.bytes = *bytes;
  for (const Operand& operand : *operands) {
    const std::optional<std::uint64_t> size = size_of(operand.dtype, operand.shape);
    if (!size || operand.on_host) return std::nullopt;
    wanted.given_bytes += *size;
  }
  wanted.operands = std::move(*operands);
  const std::uint64_t part = wanted.way == Way::kProduct ? kProductPartOfDevice : kPartOfDevice;
  if (wanted.bytes < capacity_bytes / part || wanted.bytes / kManyTimes < wanted.given_bytes) return std::nullopt;
  return wanted;
}

// The tensor that a request which failed was for: of the same request, served by a GPU that grew, or as it is noted behind the failure.
TensorId asked_for(const Trace& trace, std::uint32_t failure) {
  const Event& failed = trace.events[failure];
  for (std::size_t at = std::size_t{failure} + 1; at < trace.events.size(); ++at) {
    const Event& event = trace.events[at];
    if (event.kind == EventKind::kTensorNote && event.allocation.value == 0) return TensorId(event.extra);
    if (event.device != failed.device || event.heap != failed.heap) continue;
    if (event.kind == EventKind::kAlloc && is_served_after_all(trace, failure)) return TensorId(event.extra);
    if (event.kind <= EventKind::kAllocFailed) break;
  }
  return TensorId(0);
}

std::string what_it_is_made_of(const Wanted& wanted) {
  std::string text;
  for (std::size_t at = 0; at < wanted.operands.size(); ++at) {
    text += (at == 0                            ? ""
             : at + 1 == wanted.operands.size() ? " and "
                                                : ", ") +
            tensor_text(wanted.operands[at].dtype, wanted.operands[at].shape);
  }
  return text;
}

// [N,1,D] and [1,M,D]: rows of D numbers against rows of D numbers.
bool pairs_rows(const Wanted& wanted) {
  const std::size_t rank = wanted.shape.size();
  return wanted.way == Way::kElementwise && wanted.operands.size() == 2 && rank >= 3 && wanted.shape.back() > 1 &&
         std::all_of(wanted.operands.begin(), wanted.operands.end(), [&](const Operand& operand) {
           return operand.shape.size() >= 2 && operand.shape.back() == wanted.shape.back();
         });
}

void advise_another_way(const Wanted& wanted, Finding& finding) {
  const std::string_view bare = bare_op(wanted.op);
  const auto add = [&](std::string what, std::uint64_t saves = 0) {
    finding.tries.push_back({std::move(what), std::nullopt, saves});
  };
  if (pairs_rows(wanted) && is_one_of(bare, {"sub", "rsub", "mul"})) {
    const Shape rows(wanted.shape.begin(), wanted.shape.end() - 1);
    const std::string small =
        fmt::format("{}, {}", tensor_text(wanted.dtype, rows), format_bytes(size_of(wanted.dtype, rows).value_or(0)));
    add(bare == "mul"
            ? "Where the products are then summed over the last dimension: a @ b.transpose(-1, -2) makes only " +
                  small + "."
            : "For distances between rows: torch.cdist(a, b) makes only " + small + ".");
  } else if (wanted.way == Way::kCopies && bare != "index_select") {
    add("Leave it expanded: .expand(…) without .clone(), .contiguous() or .repeat(…) takes no memory, and operations "
        "broadcast it by themselves.");
  } else if (wanted.way == Way::kOneHot) {
    add("Do without it: F.cross_entropy takes the numbers of classes, and weight[index] is what one_hot(index) @ "
        "weight "
        "gives.");
  } else if (is_one_of(bare, {"bmm", "baddbmm"})) {
    add("Where these are the scores of attention: F.scaled_dot_product_attention does not make them, with the fused "
        "kernels that the GPU has.");
  }
}

// So many rows at once have room, by what is free and how many tensors of that size there are at one time.
void advise_pieces(const Facts& facts, std::size_t slot, const UsageMoment& moment, const Wanted& wanted, bool is_there,
                   Finding& finding) {
  const Event& failed = facts.trace.events[moment.event];
  if (!failed.has(kHasDeviceFree) || wanted.shape.size() < 2) return;
  // the last dimension is what is reduced, or the classes
  const auto dimension = std::max_element(wanted.shape.begin(), wanted.shape.end() - 1) - wanted.shape.begin();
  const auto rows = static_cast<std::uint64_t>(wanted.shape[static_cast<std::size_t>(dimension)]);
  if (rows < 2) return;
  const std::uint32_t peak = facts.usage[slot].peak_allocated.event;
  std::uint64_t at_once = 0;
  facts.lifetimes.for_each([&](AllocationId, const Lifetime& life, const Event& birth) {
    at_once += life.alive_at(peak) && birth.device == failed.device && facts.uses.is_program(birth.heap) &&
               birth.size_bytes == wanted.bytes;
  });
  at_once = std::max<std::uint64_t>(at_once, 1);
  const std::uint64_t room =
      failed.address + (moment.reserved - std::min(moment.reserved, moment.allocated)) + (is_there ? wanted.bytes : 0);
  const std::uint64_t each = wanted.bytes / rows;
  const std::uint64_t most = each == 0 ? 0 : room / (at_once * each);
  if (most == 0 || most >= rows) return;
  const std::uint64_t piece = std::bit_floor(most);
  finding.evidence.push_back({"room_bytes", static_cast<std::int64_t>(room)});
  finding.evidence.push_back({"at_once", static_cast<std::int64_t>(at_once)});
  finding.evidence.push_back({"piece_rows", static_cast<std::int64_t>(piece)});
  finding.tries.push_back(
      {fmt::format(
           "Compute it in pieces of {} of the {} in dimension {}, and reduce each before the next is made (where "
           "gradients flow through it also with torch.utils.checkpoint around each): {} have room in the {} that "
           "are free.",
           format_count(piece), format_count(rows), dimension,
           at_once == 1 ? fmt::format("{} each", format_bytes(piece * each))
                        : fmt::format("{} tensors of {} at once", at_once, format_bytes(piece * each)),
           format_bytes(room)),
       std::nullopt, 0});
}

Finding describe(const Facts& facts, std::size_t slot, const UsageMoment& moment, const Wanted& wanted, StackId stack,
                 bool is_there) {
  Finding finding = finding_at(facts, rule_name::kBroadcastBlowup, Severity::kWarning, Confidence::kProved,
                               facts.usage[slot].device, stack);
  finding.location.op = wanted.op;
  finding.bytes = wanted.bytes;
  const std::uint64_t times = wanted.bytes / std::max<std::uint64_t>(wanted.given_bytes, 1);
  finding.message =
      fmt::format("{} of {} gives {}, {}: {} times what it is made of.", wanted.op, what_it_is_made_of(wanted),
                  tensor_text(wanted.dtype, wanted.shape), format_bytes(wanted.bytes), format_count(times));
  finding.evidence = {{"result_bytes", static_cast<std::int64_t>(wanted.bytes)},
                      {"given_bytes", static_cast<std::int64_t>(wanted.given_bytes)},
                      {"times_larger", static_cast<std::int64_t>(times)}};
  advise_another_way(wanted, finding);
  advise_pieces(facts, slot, moment, wanted, is_there, finding);
  finding.fingerprint = fingerprint(finding.rule, finding.location, wanted.op);
  return finding;
}

}  // namespace

void judge_large_results(Case& subject, std::vector<Finding>& findings) {
  const Facts& facts = subject.facts();
  const Trace& trace = subject.trace();
  for (std::size_t slot = 0; slot < facts.usage.size(); ++slot) {
    const std::uint64_t capacity = trace.devices[slot].capacity_bytes;
    if (capacity == 0 || facts.usage[slot].failures.empty()) continue;
    const UsageMoment& moment = facts.usage[slot].failures.back();
    // what was asked for, else the largest of what is there: (a - b) has room, its square has not
    std::optional<Wanted> worst;
    StackId stack = trace.events[moment.event].stack;
    bool is_there = false;
    if (const TensorId asked = asked_for(trace, moment.event); asked.value != 0)
      worst = wanted_of(trace, asked, capacity);
    if (!worst) {
      facts.lifetimes.for_each([&](AllocationId, const Lifetime& life, const Event& birth) {
        if (!life.alive_at(moment.event) || birth.kind != EventKind::kAlloc || birth.extra == 0 ||
            birth.device != facts.usage[slot].device || birth.size_bytes < capacity / kPartOfDevice ||
            (worst && birth.size_bytes <= worst->bytes))
          return;
        std::optional<Wanted> one = wanted_of(trace, TensorId(birth.extra), capacity);
        if (!one) return;
        worst = std::move(one);
        stack = birth.stack;
        is_there = true;
      });
    }
    if (worst && facts.stacks.user(stack).value != 0)
      findings.push_back(describe(facts, slot, moment, *worst, stack, is_there));
  }
}

}  // namespace faultline
