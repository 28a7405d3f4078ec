// tensor/silent-upcast: memory that exists only because a type was widened where the program did not ask for it.
#include <algorithm>
#include <map>

#include "base/units.h"
#include "rules/calling_frame.h"
#include "rules/describe.h"
#include "rules/rule.h"
#include "rules/shapes.h"
#include "rules/silent_upcast/widened.h"

namespace faultline {
namespace {

// Below this nobody's program changes.
constexpr std::uint64_t kLeastBytes = 16 * kMiB;
constexpr std::uint64_t kLeastPercentOfPeak = 2;
// What is gone by the peak is only good to know, and only if it is large.
constexpr std::uint64_t kLeastPercentOfDevice = 5;
constexpr std::uint64_t kLeastPercentOfPeakElsewhere = 10;

// Widened allocations that have one cause.
struct Group {
  Widening how = Widening::kDouble;
  std::vector<Widened> members;
  std::uint64_t at_focus = 0;        // extra bytes alive at the moment that is looked at
  std::uint64_t held_at_focus = 0;   // all bytes of the same
  std::uint64_t alive_at_focus = 0;  // how many
  std::uint64_t most = 0;            // extra bytes alive at once, at any time
  AllocationId largest;              // the one that is told of
  AllocationId largest_at_focus;     // of those alive there
};

void measure(const Facts& facts, std::uint32_t focus, Group& group) {
  std::vector<std::pair<std::uint32_t, std::uint64_t>> changes;  // what is taken away is added as its two's complement
  std::uint64_t largest = 0, largest_at_focus = 0;
  AllocationId of_focus;
  for (const Widened& member : group.members) {
    const Lifetime& life = facts.lifetimes.of(member.id);
    changes.emplace_back(life.born, member.extra_bytes);
    if (life.released != kNever) changes.emplace_back(life.released, 0 - member.extra_bytes);
    if (member.extra_bytes > largest) {
      largest = member.extra_bytes;
      group.largest = member.id;
    }
    if (!life.alive_at(focus)) continue;
    group.at_focus += member.extra_bytes;
    group.held_at_focus += facts.lifetimes.held_bytes(member.id);
    ++group.alive_at_focus;
    if (member.extra_bytes <= largest_at_focus) continue;
    largest_at_focus = member.extra_bytes;
    of_focus = member.id;
  }
  group.largest_at_focus = of_focus;
  std::sort(changes.begin(), changes.end());
  std::uint64_t now = 0;
  for (const auto& [event, change] : changes) {
    now += change;
    group.most = std::max(group.most, now);
  }
}

// The highest allocated bytes if these allocations had been narrow: another moment may then be the peak.
std::uint64_t peak_without(const Facts& facts, std::uint16_t device, const std::vector<Widened>& members) {
  std::vector<std::uint64_t> extra(facts.trace.allocation_count + std::size_t{1});
  for (const Widened& member : members) extra[member.id.index()] = member.extra_bytes;
  std::uint64_t now = 0, peak = 0;
  for (const Event& event : facts.trace.events) {
    if (event.device != device || event.allocation.value == 0 ||
        facts.trace.heaps[event.heap.index()].kind == HeapKind::kDriver)
      continue;
    if (event.kind != EventKind::kAlloc && !event.ends_use()) continue;
    const std::uint64_t bytes = facts.lifetimes.held_bytes(event.allocation) - extra[event.allocation.index()];
    now = event.kind == EventKind::kAlloc ? now + bytes : now - std::min(now, bytes);
    peak = std::max(peak, now);
  }
  return peak;
}

const Tensor& tensor_of(const Facts& facts, AllocationId id) {
  return facts.trace.tensors.at(TensorId(facts.lifetimes.birth(id).extra));
}

std::string text_of(const Facts& facts, AllocationId id) {
  const Tensor& tensor = tensor_of(facts, id);
  return tensor_text(facts.trace.strings.at(tensor.dtype), tensor.shape);
}

bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

// The function of the library that made the copy, by its name.
std::string_view library_function(const Facts& facts, AllocationId id) {
  const StackId inner = calling_frame(facts.trace, facts.lifetimes.birth(id).stack);
  return facts.trace.strings.at(facts.trace.stacks.frame(inner).function);
}

bool is_norm(const Facts& facts, AllocationId id) {
  const StackId inner = calling_frame(facts.trace, facts.lifetimes.birth(id).stack);
  const std::string_view file = facts.trace.strings.at(facts.trace.stacks.frame(inner).file);
  const std::string_view name = facts.trace.strings.at(tensor_of(facts, id).name);
  const std::string_view module = name.substr(name.rfind('.') == std::string_view::npos ? 0 : name.rfind('.') + 1);
  return contains(library_function(facts, id), "norm") || contains(file, "norm") || contains(module, "norm") ||
         module.starts_with("ln");
}

bool is_class_loss(const Facts& facts, AllocationId id) {
  const std::string_view function = library_function(facts, id);
  return contains(function, "cross_entropy") || contains(function, "log_softmax") || contains(function, "loss");
}

void tell_double(const Facts& facts, std::size_t slot, const Group& group, std::uint64_t bytes, const std::string& when,
                 Finding& finding) {
  const auto entry =
      std::find_if(group.members.begin(), group.members.end(), [](const Widened& member) { return member.is_entry; });
  const StackId stack = facts.lifetimes.birth(entry->id).stack;
  finding.location = location_of(facts, stack);
  finding.call_path = callers_of(facts, stack);
  const bool spread =
      std::any_of(group.members.begin(), group.members.end(), [](const Widened& member) { return !member.is_entry; });
  finding.message = format_bytes(bytes) + " of memory " + when +
                    " exist only because tensors are float64: float64 first came to the device at this line" +
                    (spread ? ", and what was computed from it is float64 too." : ".");
  finding.memory =
      text_of(facts, entry->id) +
      " was float64 on the host already, which is NumPy's default type; nothing on the device requires it.";
  if (group.alive_at_focus != 0) {
    finding.evidence.push_back({"float64_bytes", static_cast<std::int64_t>(group.held_at_focus)});
    finding.evidence.push_back({"float64_tensors", static_cast<std::int64_t>(group.alive_at_focus)});
  }
  add_try(finding,
          "Make it float32 before it goes to the device: `torch.from_numpy(a).float().to(device)`, or give the array "
          "dtype=np.float32 where it is made.");
  // Whose lines hold the wide tensors.
  std::map<FrameId, Holder> by_line;
  const std::uint32_t focus = facts.focus(slot).event;
  for (const Widened& member : group.members) {
    if (!facts.lifetimes.of(member.id).alive_at(focus)) continue;
    const StackId made = facts.lifetimes.birth(member.id).stack;
    Holder& holder = by_line[facts.trace.stacks.frame_id(facts.stacks.user(made))];
    if (holder.count++ == 0) {
      holder.category = "float64";
      holder.location = location_of(facts, made);
      holder.detail =
          made.value == 0 ? "recorded without a stack" : library_detail(facts, calling_frame(facts.trace, made));
    }
    holder.bytes += facts.lifetimes.held_bytes(member.id);
  }
  for (auto& [line, holder] : by_line) finding.holders.push_back(std::move(holder));
  std::sort(finding.holders.begin(), finding.holders.end(),
            [](const Holder& a, const Holder& b) { return a.bytes > b.bytes; });
  if (finding.holders.size() > 8) finding.holders.resize(8);
}

void tell_promotion(const Facts& facts, const Group& group, std::uint64_t bytes, const std::string& when,
                    Finding& finding) {
  const Tensor& tensor = tensor_of(facts, group.largest);
  const std::string_view given = facts.trace.strings.at(tensor.operands);
  finding.message = format_bytes(bytes) + " of memory " + when +
                    " exist only because half-precision tensors met a small float32 one at this line, which makes the "
                    "whole result float32.";
  finding.memory = text_of(facts, group.largest) + ", the largest, was made by " +
                   std::string(facts.trace.strings.at(tensor.op)) + " of " + std::string(given) + ".";
  const std::optional<std::vector<Operand>> operands = parse_operands(given);
  std::string narrow, small;
  for (const Operand& operand : *operands) {
    if (is_half(operand.dtype)) narrow = operand.dtype;
    if (operand.dtype == "float32" && !operand.shape.empty()) small = tensor_text(operand.dtype, operand.shape);
  }
  add_try(finding, "Cast the small operand, not the large one: " + small + " with `.to(torch." + narrow +
                       ")` leaves the result in " + narrow + ".");
}

void tell_copy(const Facts& facts, const Group& group, std::uint64_t bytes, const std::string& when, Finding& finding) {
  const Tensor& tensor = tensor_of(facts, group.largest);
  const std::string inside =
      library_detail(facts, calling_frame(facts.trace, facts.lifetimes.birth(group.largest).stack));
  finding.message = format_bytes(bytes) + " of memory " + when +
                    " are float32 copies of half-precision tensors that a library made under this line, " + inside +
                    ".";
  finding.memory = text_of(facts, group.largest) + ", the largest, is a copy of " +
                   std::string(facts.trace.strings.at(tensor.operands)) + ".";
  if (is_class_loss(facts, group.largest) && tensor.shape.size() >= 2) {
    add_try(finding,
            "Compute the loss over a few rows at a time (for example 1,024, each under torch.utils.checkpoint) and add "
            "the parts up: then no float32 "
            "copy of all the scores exists at once.");
  }
}

std::optional<Finding> describe(const Facts& facts, std::size_t slot, Group& group) {
  const UsageMoment& focus = facts.focus(slot);
  const DeviceUsage& usage = facts.usage[slot];
  const std::uint64_t capacity = facts.trace.devices[slot].capacity_bytes;
  measure(facts, focus.event, group);
  const bool at_focus = group.at_focus >= kLeastBytes && group.at_focus >= focus.allocated / 100 * kLeastPercentOfPeak;
  const std::uint64_t least_elsewhere = capacity != 0
                                            ? capacity / 100 * kLeastPercentOfDevice
                                            : usage.peak_allocated.allocated / 100 * kLeastPercentOfPeakElsewhere;
  if (!at_focus && group.most < std::max(kLeastBytes, least_elsewhere)) return std::nullopt;
  if (at_focus) group.largest = group.largest_at_focus;  // what is counted there
  // A copy that a library makes is nothing that the program can change, unless memory ran out and there is a way around it; a norm in float32 is numerics that its authors chose.
  const bool can_change =
      group.how != Widening::kCopy ||
      (!usage.failures.empty() && is_class_loss(facts, group.largest) && !is_norm(facts, group.largest));
  const Severity severity = at_focus && can_change ? Severity::kWarning : Severity::kNote;
  const Confidence confidence = group.how == Widening::kDouble ? Confidence::kLikely : Confidence::kProved;
  Finding finding = finding_at(facts, rule_name::kSilentUpcast, severity, confidence, usage.device,
                               facts.lifetimes.birth(group.largest).stack);
  finding.bytes = at_focus ? group.at_focus : group.most;
  finding.count = at_focus ? group.alive_at_focus : group.members.size();
  const std::string when = !at_focus                ? "at one time, though not at the peak,"
                           : usage.failures.empty() ? "at the peak"
                                                    : "when memory ran out";
  if (at_focus) {
    finding.evidence.push_back({usage.failures.empty() ? "extra_at_peak_bytes" : "extra_at_failure_bytes",
                                static_cast<std::int64_t>(group.at_focus)});
    finding.evidence.push_back({usage.failures.empty() ? "share_of_peak" : "share_of_allocated",
                                static_cast<double>(group.at_focus) / static_cast<double>(focus.allocated)});
  } else {
    finding.evidence.push_back({"extra_at_once_bytes", static_cast<std::int64_t>(group.most)});
  }
  switch (group.how) {
    case Widening::kDouble: tell_double(facts, slot, group, finding.bytes, when, finding); break;
    case Widening::kPromotion: tell_promotion(facts, group, finding.bytes, when, finding); break;
    case Widening::kCopy: tell_copy(facts, group, finding.bytes, when, finding); break;
  }
  if (!finding.tries.empty() && at_focus) {
    const std::uint64_t peak = usage.peak_allocated.allocated;
    const std::uint64_t without = std::min(peak, peak_without(facts, usage.device, group.members));
    finding.tries.front().saves_bytes = peak - without;
  }
  finding.fingerprint = fingerprint(finding.rule, finding.location,
                                    group.how == Widening::kDouble ? "double"
                                    : group.how == Widening::kCopy ? "copy"
                                                                   : "promotion");
  return finding;
}

}  // namespace

void judge_silent_upcast(Case& subject, std::vector<Finding>& findings, std::vector<NotJudged>&) {
  const Facts& facts = subject.facts();
  for (std::size_t slot = 0; slot < facts.usage.size(); ++slot) {
    // float64 spreads from where it came in: one cause. The others are one cause for each line.
    std::map<std::pair<Widening, FrameId>, Group> groups;
    for (const Widened& widened : find_widened(facts, slot)) {
      const StackId line =
          widened.how == Widening::kDouble ? StackId() : facts.stacks.user(facts.lifetimes.birth(widened.id).stack);
      Group& group = groups[{widened.how, subject.trace().stacks.frame_id(line)}];
      group.how = widened.how;
      group.members.push_back(widened);
    }
    std::vector<Finding> found;
    for (auto& [cause, group] : groups) {
      if (std::optional<Finding> finding = describe(facts, slot, group)) found.push_back(std::move(*finding));
    }
    std::stable_sort(found.begin(), found.end(), [](const Finding& a, const Finding& b) { return a.bytes > b.bytes; });
    findings.insert(findings.end(), std::make_move_iterator(found.begin()), std::make_move_iterator(found.end()));
  }
}

}  // namespace faultline
