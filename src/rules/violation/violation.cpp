// access/out-of-bounds, access/use-after-free, access/uninitialized, access/misaligned: accesses that were caught (Violation events), with what is wrong with each.
//
// Nothing is weighed here: who caught the access knows what it is. The same line of a kernel makes one finding for each kind; an access of a kind that this version does
// not know is access/illegal-address.
#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include "base/units.h"
#include "facts/kernel_name.h"
#include "rules/describe.h"
#include "rules/kernel_place.h"
#include "rules/memory_words.h"
#include "rules/rule.h"

namespace faultline {
namespace {

constexpr std::size_t kMostFindings = 64;  // each is looked for in all of the memory

struct Words {
  std::string_view rule;
  std::string_view what;  // continues "Kernel K read 4 bytes …"
  std::string_view advice;
};

const Words& words_of(ViolationKind kind) {
  static constexpr std::array<Words, 5> kWords = {{
      // in the order of the kinds
      {rule_name::kIllegalAddress, "that it must not touch", ""},
      {rule_name::kOutOfBounds, "outside of its memory",
       "Bound the index (in Triton: mask=offsets < n; in CUDA: if (i < n))."},
      {rule_name::kUseAfterFree, "of memory that had been freed",
       "Keep what the kernel was given alive until it has run; a tensor used on another stream needs record_stream."},
      {rule_name::kUninitialized, "that nothing had written",
       "Fill the memory before (torch.zeros instead of torch.empty, cudaMemset), or read only what was written."},
      {rule_name::kMisaligned, "from an address that such an access is not aligned to",
       "Give the kernel .clone() of a view that begins at an odd offset, or load fewer bytes at once."},
  }};
  const auto at = static_cast<std::size_t>(kind);
  return kWords[at < kWords.size() ? at : 0];
}

std::string_view verb_of(AccessKind access) {
  return access == AccessKind::kRead ? "read" : access == AccessKind::kWrite ? "wrote" : "atomically changed";
}

// A violation without a stack of its own belongs to the last launch of its kernel.
StackId launched_at(const Trace& trace, std::uint32_t event, StringId kernel) {
  if (trace.events[event].stack.value != 0) return trace.events[event].stack;
  for (std::uint32_t at = event; at-- > 0;) {
    const Event& before = trace.events[at];
    if (before.kind == EventKind::kLaunch && trace.launches.at(LaunchId(before.extra)).kernel == kernel)
      return before.stack;
  }
  return {};
}

Finding finding_of(const Facts& facts, std::uint32_t index, const Violation& violation, std::uint64_t times) {
  const Trace& trace = facts.trace;
  const Event& event = trace.events[index];
  const Words& words = words_of(violation.kind);
  Finding finding = finding_at(facts, words.rule, Severity::kError, Confidence::kProved, event.device, {});
  finding.bytes = event.size_bytes;
  finding.location.kernel = kernel_name_with_arguments(trace.strings.at(violation.kernel));
  add_place(facts, violation, launched_at(trace, index, violation.kernel), finding);
  finding.message = kernel_words(trace, violation.kernel) + " " + std::string(verb_of(violation.access)) + " " +
                    distance_words(event.size_bytes) + " " + std::string(words.what) + ", at " + hex(event.address) +
                    ".";
  finding.evidence.push_back({"address", hex(event.address)});
  finding.evidence.push_back({"access_bytes", static_cast<std::int64_t>(event.size_bytes)});
  const AddressMap map(trace, facts.lifetimes, facts.uses, index);
  const AddressPlace place =
      event.allocation.value != 0 ? map.relative_to(event.allocation, event.address) : map.place(event.address);
  if (place.where != Where::kUnknown) set_memory(facts, place, ".", finding);
  if (times > 1) finding.evidence.push_back({"accesses_like_it", static_cast<std::int64_t>(times)});
  add_thread_of(violation, finding);
  if (!words.advice.empty()) add_try(finding, std::string(words.advice));
  finding.fingerprint = fingerprint(finding.rule, finding.location, finding.location.kernel);
  return finding;
}

}  // namespace

void judge_violations(Case& subject, std::vector<Finding>& findings, std::vector<NotJudged>& not_judged) {
  const Trace& trace = subject.trace();
  struct Group {
    std::uint32_t first = 0;
    std::uint64_t times = 0;
  };
  // by line, or by instruction where no line is known
  std::map<std::tuple<ViolationKind, StringId, StringId, std::uint32_t, std::uint64_t>, Group> groups;
  for (const std::uint32_t index : subject.facts().violations) {
    const Violation& violation = trace.violations.at(ViolationId(trace.events[index].extra));
    Group& group = groups[{violation.kind, violation.kernel, violation.file, violation.line,
                           violation.line != 0 ? 0 : violation.pc}];
    if (group.times++ == 0) group.first = index;
  }
  std::vector<Group> in_order;
  for (const auto& [key, group] : groups) in_order.push_back(group);
  std::sort(in_order.begin(), in_order.end(), [](const Group& a, const Group& b) { return a.first < b.first; });
  for (std::size_t at = 0; at < in_order.size() && at < kMostFindings; ++at) {
    findings.push_back(finding_of(subject.facts(), in_order[at].first,
                                  trace.violations.at(ViolationId(trace.events[in_order[at].first].extra)),
                                  in_order[at].times));
  }
  if (in_order.size() > kMostFindings) {
    not_judged.push_back({rule_name::kOutOfBounds, format_count(in_order.size() - kMostFindings) +
                                                       " caught accesses beyond the first " +
                                                       std::to_string(kMostFindings) + " lines were not looked at"});
  }
}

}  // namespace faultline
