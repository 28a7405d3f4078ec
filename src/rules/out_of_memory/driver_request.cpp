#include "rules/out_of_memory/driver_request.h"

#include <algorithm>

#include "base/units.h"
#include "facts/libraries.h"
#include "facts/outside.h"
#include "rules/describe.h"

namespace faultline {
namespace {

constexpr std::uint64_t kDriverMarginBytes = 256 * kMiB;      // a device refuses its last pages; beyond this the refusal was not for want of room
constexpr std::uint64_t kUsualUnaskedBytes = 3 * kGiB / 2;    // a context and loaded code

struct Numbers {
  std::uint64_t request = 0;
  std::uint64_t device_free = 0;
  bool free_known = false;
  std::uint64_t capacity = 0;
  std::uint64_t reserved = 0;      // the framework's, or without one the program's
  std::uint64_t in_use = 0;
  std::uint64_t outside = 0;       // known to be asked for beside the framework
  std::uint64_t returnable = 0;    // idle in the framework, in whole segments
  std::uint64_t before_start = 0;  // taken of the device before the program asked for anything
  bool has_framework = false;
  std::uint64_t unexplained() const {
    const std::uint64_t known = reserved + outside + device_free;
    return free_known && capacity > known ? capacity - known : 0;
  }
};

struct Cause {
  std::string name;
  Confidence confidence = Confidence::kLikely;
  std::string why;
};

Cause cause_of(const Numbers& n) {
  const std::string free_text = n.free_known ? "the device had " + format_bytes(n.device_free) + " free" : "how much the device had free is not recorded";
  const std::string held = n.has_framework ? "PyTorch held " + format_bytes(n.reserved) + ", " + format_bytes(n.in_use) + " of it in use"
                                           : "the program held " + format_bytes(n.in_use);
  if (n.capacity != 0 && n.request > n.capacity) return {"exhausted", Confidence::kProved, "the device has " + format_bytes(n.capacity) + " in all"};
  if (n.returnable != 0 && n.free_known && n.device_free < n.request && n.returnable + n.device_free >= n.request) {
    return {"idle-cache", Confidence::kProved, "PyTorch holds " + format_bytes(n.returnable) + " of idle cache in whole segments, which with the device's " + format_bytes(n.device_free) +
            " would have served it; it gives them back for its own requests only"};
  }
  if (n.free_known && n.device_free >= n.request + kDriverMarginBytes) {
    return {"own-limit", Confidence::kHint, free_text + ", so a limit of its own stood in the way (of a memory pool, of MPS), or no addresses were left in one piece; " + held};
  }
  if (!n.free_known) return {"", Confidence::kHint, held + "; " + free_text};
  if (n.before_start > kUsualUnaskedBytes && n.request <= n.device_free + n.before_start - kUsualUnaskedBytes) {
    return {"other-process", Confidence::kLikely, format_bytes(n.before_start) + " of the device were taken before this program asked for anything, most of it by other processes; " + held + ", and " + free_text};
  }
  if (n.unexplained() > kUsualUnaskedBytes && n.request <= n.device_free + n.unexplained() - kUsualUnaskedBytes) {
    return {"other-process", Confidence::kHint, format_bytes(n.unexplained()) + " of the device were held by nothing that this recording shows: other processes, or what the driver keeps for itself; " + held +
            ", and " + free_text};
  }
  std::string numbers = held;
  if (n.outside != 0) numbers += ", other libraries " + format_bytes(n.outside);
  numbers += ", and " + free_text + (n.capacity != 0 ? " of " + format_bytes(n.capacity) : "");
  return {"exhausted", n.capacity != 0 ? Confidence::kProved : Confidence::kLikely, numbers};
}

std::string asker_words(const Facts& facts, const Event& event) {
  const std::string library = library_of(facts.trace, event.stack);
  return library.empty() || library == "the program" ? std::string() : library;
}

void add_holders(const Facts& facts, std::size_t slot, std::uint32_t event, Finding& finding) {
  finding.holders = holders_at(facts, slot, event);
  for (const OutsidePart& part : outside_parts(facts.trace, facts.lifetimes, facts.uses, facts.usage[slot].device, event)) {
    if (finding.holders.size() >= 12) break;
    finding.holders.push_back({part.bytes, part.count, "outside", {}, part.what});
  }
  std::stable_sort(finding.holders.begin(), finding.holders.end(), [](const Holder& a, const Holder& b) { return a.bytes > b.bytes; });
}

}  // namespace

bool is_driver_request(const Trace& trace, const Event& failed) {
  switch (trace.heaps[failed.heap.index()].kind) {
    case HeapKind::kTorchCaching:
    case HeapKind::kBfc:
    case HeapKind::kOther: return false;
    default: return true;
  }
}

bool ended_well(const Trace& trace) {
  const auto ending = trace.properties.find("process.ended");
  if (ending == trace.properties.end() || ending->second != "exit") return false;
  const auto own = trace.properties.find("process.exit_status");
  const auto status = own != trace.properties.end() ? own : trace.properties.find("run.exit_status");
  if (status == trace.properties.end() || status->second != "0") return false;
  return std::none_of(trace.properties.begin(), trace.properties.end(), [](const auto& property) { return property.first.starts_with("process.exception"); });
}

Finding describe_driver_failure(Case& subject, std::size_t slot, const UsageMoment& moment, std::uint64_t times) {
  const Facts& facts = subject.facts();
  const Trace& trace = subject.trace();
  const Event& event = trace.events[moment.event];
  const HeapKind heap = trace.heaps[event.heap.index()].kind;
  const bool on_host = heap == HeapKind::kPinnedHost || heap == HeapKind::kRegisteredHost || heap == HeapKind::kTorchPinnedHost;
  Numbers numbers;
  numbers.request = event.size_bytes;
  numbers.free_known = event.has(kHasDeviceFree);
  numbers.device_free = numbers.free_known ? event.address : 0;
  numbers.capacity = trace.devices[slot].capacity_bytes;
  numbers.reserved = moment.reserved;
  numbers.in_use = moment.allocated + moment.pending;
  numbers.outside = moment.outside;
  numbers.has_framework = facts.uses.has_framework(event.device);
  if (numbers.has_framework) numbers.returnable = picture_free_space(trace, facts.lifetimes, event.device, moment.event).returnable_bytes;
  if (const auto unasked = unasked_memory(trace, trace.devices[slot])) numbers.before_start = unasked->before_start;
  const Cause cause = on_host ? Cause{"", Confidence::kProved, "the system gave no more page-locked host memory"} : cause_of(numbers);

  const std::string asker = asker_words(facts, event);
  Finding finding;
  finding.rule = "memory/out-of-memory";
  finding.severity = ended_well(trace) ? Severity::kWarning : Severity::kError;
  finding.confidence = cause.confidence;
  finding.cause = cause.name;
  finding.device = event.device;
  finding.location = location_of(facts, event.stack);
  finding.call_path = callers_of(facts, event.stack);
  finding.bytes = event.size_bytes;
  finding.count = times;
  finding.message = (asker.empty() ? format_bytes(event.size_bytes) + " were asked for" : asker + " asked the driver for " + format_bytes(event.size_bytes)) + ": " + cause.why + ".";
  if (numbers.has_framework && asker != "PyTorch" && !on_host) finding.memory = "The request went past PyTorch's allocator, straight to the driver.";
  if (finding.severity == Severity::kWarning) finding.memory += std::string(finding.memory.empty() ? "" : " ") + "The program went on and ended well.";
  finding.evidence = {{"requested_bytes", static_cast<std::int64_t>(event.size_bytes)}, {"allocated_bytes", static_cast<std::int64_t>(numbers.in_use)}};
  if (numbers.has_framework) {
    finding.evidence.push_back({"reserved_bytes", static_cast<std::int64_t>(numbers.reserved)});
    finding.evidence.push_back({"idle_cache_bytes", static_cast<std::int64_t>(numbers.returnable)});
  }
  if (numbers.outside != 0) finding.evidence.push_back({"other_libraries_bytes", static_cast<std::int64_t>(numbers.outside)});
  if (numbers.free_known) finding.evidence.push_back({"device_free_bytes", static_cast<std::int64_t>(numbers.device_free)});
  if (numbers.capacity != 0) finding.evidence.push_back({"device_capacity_bytes", static_cast<std::int64_t>(numbers.capacity)});
  if (numbers.before_start != 0) finding.evidence.push_back({"taken_before_start_bytes", static_cast<std::int64_t>(numbers.before_start)});
  if (!on_host) add_holders(facts, slot, moment.event, finding);
  if (cause.name == "idle-cache") {
    finding.tries.push_back({"Call torch.cuda.empty_cache() before this line, once; or keep PyTorch from taking the last of the device: torch.cuda.set_per_process_memory_fraction(0.9).", std::nullopt, 0});
  } else if (cause.name == "other-process") {
    finding.tries.push_back({"Run `nvidia-smi` to see which processes hold the device.", std::nullopt, 0});
  }
  finding.fingerprint = fingerprint(finding.rule, finding.location, finding.cause + asker);
  return finding;
}

}  // namespace faultline
