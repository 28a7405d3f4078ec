#include <algorithm>

#include "base/units.h"
#include "facts/libraries.h"
#include "facts/outside.h"
#include "rules/describe.h"
#include "rules/out_of_memory/advice.h"
#include "rules/out_of_memory/out_of_memory.h"
#include "sources/rule_names.h"
#include "trace/framework.h"

namespace faultline {
namespace {

std::string asker_words(const Facts& facts, const Event& event) {
  const std::string library = library_of(facts.trace, event.stack);
  return library.empty() || library == "the program" ? std::string() : library;
}

void add_holders(const Facts& facts, std::size_t slot, std::uint32_t event, Finding& finding) {
  finding.holders = holders_at(facts, slot, event);
  for (const OutsidePart& part :
       outside_parts(facts.trace, facts.lifetimes, facts.uses, facts.usage[slot].device, event)) {
    if (finding.holders.size() >= 12) break;
    finding.holders.push_back(Holder{part.bytes, part.count, "outside", Location(), part.what});
  }
  std::stable_sort(finding.holders.begin(), finding.holders.end(),
                   [](const Holder& a, const Holder& b) { return a.bytes > b.bytes; });
}

}  // namespace

Finding describe_driver_failure(Case& subject, std::size_t slot, const UsageMoment& moment, std::uint64_t times) {
  const Facts& facts = subject.facts();
  const Trace& trace = subject.trace();
  const Event& event = trace.events[moment.event];
  const HeapKind heap = trace.heaps[event.heap.index()].kind;
  const bool on_host =
      heap == HeapKind::kPinnedHost || heap == HeapKind::kRegisteredHost || heap == HeapKind::kTorchPinnedHost;
  const bool has_framework = facts.uses.has_framework(event.device);
  const std::uint64_t in_use = moment.allocated + moment.pending, capacity = trace.devices[slot].capacity_bytes;
  Shortage shortage;
  shortage.from_driver = true;
  shortage.sees_own_requests = true;
  shortage.requested = shortage.segment = ByteInterval::exactly(event.size_bytes);
  shortage.live = ByteInterval::exactly(has_framework ? in_use : std::max(in_use, moment.reserved));
  shortage.idle = ByteInterval{};
  shortage.outside = ByteInterval::exactly(moment.outside);
  if (event.has(kHasDeviceFree)) shortage.free = ByteInterval::exactly(event.address);
  if (capacity != 0) shortage.capacity = ByteInterval::exactly(capacity);
  if (has_framework) {
    shortage.reserved = ByteInterval::exactly(moment.reserved);
    shortage.idle = *shortage.reserved - *shortage.live;
    shortage.returnable = ByteInterval::exactly(subject.free_space(event.device, moment.event).returnable_bytes);
  } else {
    shortage.holder = "the program";
  }
  if (const auto unasked = unasked_memory(trace, trace.devices[slot]))
    shortage.before_start = ByteInterval::exactly(unasked->before_start);
  const CauseVerdict verdict =
      on_host ? CauseVerdict{Story::kOpen, Confidence::kProved, "the system gave no more page-locked host memory", ""}
              : cause_of(shortage);

  const std::string asker = asker_words(facts, event);
  Finding finding = finding_at(facts, rule_name::kOutOfMemory,
                               subject.statements().ending.well() ? Severity::kWarning : Severity::kError,
                               verdict.confidence, event.device, event.stack);
  finding.cause = verdict.cause();
  finding.bytes = event.size_bytes;
  finding.count = times;
  finding.message =
      (asker.empty() ? asked_for(ByteInterval::exactly(event.size_bytes))
                     : asker + " asked the driver for " + shown(ByteInterval::exactly(event.size_bytes))) +
      ": " + verdict.why + ".";
  if (has_framework && asker != words_of(Framework::kPyTorch) && !on_host)
    finding.memory = "The request went past PyTorch's allocator, straight to the driver.";
  if (finding.severity == Severity::kWarning)
    finding.memory += std::string(finding.memory.empty() ? "" : " ") + "The program went on and ended well.";
  add_evidence(finding, "requested_bytes", event.size_bytes);
  add_evidence(finding, "allocated_bytes", in_use);
  if (shortage.reserved) add_evidence(finding, "reserved_bytes", moment.reserved);
  if (shortage.returnable) add_evidence(finding, "idle_cache_bytes", shortage.returnable->max);
  if (moment.outside != 0) add_evidence(finding, "other_libraries_bytes", moment.outside);
  if (shortage.free) add_evidence(finding, "device_free_bytes", shortage.free->max);
  if (capacity != 0) add_evidence(finding, "device_capacity_bytes", capacity);
  if (shortage.before_start && shortage.before_start->max != 0)
    add_evidence(finding, "taken_before_start_bytes", shortage.before_start->max);
  if (!on_host) {
    add_evidence(finding, "inequality", verdict.inequality);
    add_holders(facts, slot, moment.event, finding);
    advise(verdict, {}, finding);
  }
  finding.fingerprint = fingerprint(finding.rule, finding.location, finding.cause + asker);
  return finding;
}

}  // namespace faultline
