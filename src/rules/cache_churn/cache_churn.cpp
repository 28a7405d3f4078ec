// memory/cache-churn: torch.cuda.empty_cache() again and again at one line, where what it gives back is taken again before the next call.
//
// A call is told by its stack: the segments it returns carry PyTorch's own function empty_cache as the innermost Python frame. What PyTorch
// returns by itself, at a retry or when it collects garbage, carries the request that caused it. A call that returned nothing leaves no mark.
#include <algorithm>
#include <map>

#include "base/units.h"
#include "rules/describe.h"
#include "rules/rule.h"

namespace faultline {
namespace {

constexpr std::uint64_t kLeastCalls = 3;
constexpr std::uint64_t kLeastPercentTakenAgain = 80;
constexpr std::uint64_t kLeastBytesPerCall = 64 * kMiB;

// PyTorch's function empty_cache, where the stack ends in it; else 0.
StackId empty_cache_frame(const Facts& facts, StackId stack) {
  const StackId inner = facts.stacks.innermost_python(stack);
  if (inner.value == 0) return {};
  const Frame& frame = facts.trace.stacks.frame(inner);
  const std::string_view file = facts.trace.strings.at(frame.file);
  const bool is_it = facts.trace.strings.at(frame.function) == "empty_cache" &&
                     file.find("torch/") != std::string_view::npos && is_library_file(file);
  return is_it ? inner : StackId();
}

struct Amounts {
  std::uint64_t returned = 0;
  std::uint64_t taken_again = 0;
  // of taken_again: in a segment of a size that was returned, or without a segment's size (expandable memory)
  std::uint64_t in_same_sizes = 0;
};

// The calls of empty_cache at one line of the user's.
class Line {
 public:
  void begin_call(StackId caller, HeapId heap) {
    past_.returned += last_.returned;
    past_.taken_again += last_.taken_again;
    past_.in_same_sizes += last_.in_same_sizes;
    last_ = {};
    sizes_.clear();
    caller_ = caller;
    heap_ = heap;
    ++calls_;
  }

  void give_back(const Event& event) {
    last_.returned += event.size_bytes;
    if (event.kind == EventKind::kFree) sizes_.push_back(event.size_bytes);
  }

  void take(const Event& event) {
    if (event.heap != heap_) return;
    const std::uint64_t again = std::min(event.size_bytes, last_.returned - last_.taken_again);
    const auto same = std::find(sizes_.begin(), sizes_.end(), event.size_bytes);
    last_.taken_again += again;
    if (event.kind == EventKind::kMap || same != sizes_.end()) last_.in_same_sizes += again;
    if (same != sizes_.end()) sizes_.erase(same);
  }

  std::uint64_t calls() const { return calls_; }
  StackId caller() const { return caller_; }
  const Amounts& before_last() const { return past_; }  // what follows the last call is not known to the end

  bool churns() const {
    return calls_ >= kLeastCalls && past_.returned / (calls_ - 1) >= kLeastBytesPerCall &&
           past_.taken_again >= past_.returned / 100 * kLeastPercentTakenAgain;
  }

 private:
  Amounts past_, last_;
  std::vector<std::uint64_t> sizes_;  // of the segments that the last call returned and nothing took since
  StackId caller_;
  HeapId heap_;
  std::uint64_t calls_ = 0;
};

using Lines = std::map<FrameId, Line>;

Lines find_calls(const Facts& facts, std::uint16_t device) {
  const Trace& trace = facts.trace;
  Lines lines;
  // the call whose segments are being returned: one call returns all of its own with nothing in between
  StackId returning;
  for (const Event& event : trace.events) {
    const bool returns = event.kind == EventKind::kUnmap || event.returns_to_heap();
    const bool takes = event.kind == EventKind::kMap || event.kind == EventKind::kAlloc;
    if (event.device != device || !(returns || takes || event.ends_use())) continue;
    const bool is_segment = facts.uses.of(event.heap) == HeapUse::kSegments;
    if (is_segment && takes) {
      for (auto& [place, line] : lines) line.take(event);
    }
    const StackId function = is_segment && returns ? empty_cache_frame(facts, event.stack) : StackId();
    if (function.value != 0) {
      const StackId caller = trace.stacks.parent(function);
      const StackId user = facts.stacks.user(caller);
      Line& line = lines[trace.stacks.frame_id(user.value != 0 ? user : caller)];
      if (event.stack != returning) line.begin_call(caller, event.heap);
      line.give_back(event);
    }
    returning = function.value != 0 ? event.stack : StackId();
  }
  return lines;
}

Finding describe(const Facts& facts, std::uint16_t device, const Line& line) {
  const Amounts& amounts = line.before_last();
  const std::uint64_t per_call = amounts.returned / (line.calls() - 1);
  // Segments of the sizes that were returned could have served; of other sizes, new ones may have kept fragmentation down.
  const bool same_sizes = amounts.in_same_sizes >= amounts.taken_again / 100 * kLeastPercentTakenAgain;
  Finding finding = finding_at(facts, rule_name::kCacheChurn, Severity::kNote,
                               same_sizes ? Confidence::kProved : Confidence::kLikely, device, line.caller());
  finding.bytes = per_call;
  finding.count = line.calls();
  finding.message =
      "torch.cuda.empty_cache() gave memory back to the driver " + format_count(line.calls()) +
      " times at this line, " + format_bytes(per_call) + " each time on average, and " +
      std::to_string(amounts.taken_again * 100 / amounts.returned) +
      " % of it was taken again before the next call; that costs time" +
      (same_sizes
           ? " and gives this program no memory, since PyTorch returns what is idle by itself before a request fails."
           : ".");
  const std::string inside = library_detail(facts, line.caller());
  if (!inside.empty()) finding.memory = "The call itself is " + inside + ". ";
  finding.memory +=
      "It makes sense only where another process, or another library in this one, needs the memory in between.";
  if (!same_sizes)
    finding.memory += " What was taken again has other sizes, so the call may also keep fragmentation down.";
  finding.evidence = {{"calls", static_cast<std::int64_t>(line.calls())},
                      {"returned_bytes", static_cast<std::int64_t>(amounts.returned)},
                      {"taken_again_bytes", static_cast<std::int64_t>(amounts.taken_again)}};
  const std::string doubt =
      same_sizes ? "" : " If it is there against fragmentation, compare the peak of what is reserved.";
  add_try(finding, "Remove the call: that saves time, not memory." + doubt);
  finding.fingerprint = fingerprint(finding.rule, finding.location);
  return finding;
}

}  // namespace

void judge_cache_churn(Case& subject, std::vector<Finding>& findings, std::vector<NotJudged>& not_judged) {
  const Facts& facts = subject.facts();
  if (!has_history(subject.trace(), rule_name::kCacheChurn, not_judged)) return;
  for (const DeviceUsage& usage : facts.usage) {
    for (const auto& [place, line] : find_calls(facts, usage.device)) {
      if (line.churns()) findings.push_back(describe(facts, usage.device, line));
    }
  }
}

}  // namespace faultline
