#include "rules/out_of_memory/out_of_memory.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/units.h"
#include "facts/outside.h"
#include "models/search.h"
#include "models/torch/segment_sizes.h"
#include "rules/describe.h"
#include "rules/out_of_memory/advice.h"
#include "rules/out_of_memory/request.h"

namespace faultline {
namespace {

// The moment of failure in the allocator's own numbers.
Shortage shortage_of(const Case& subject, std::size_t slot, const UsageMoment& moment) {
  const Trace& trace = subject.trace();
  const Device& device = trace.devices[slot];
  const Event& event = trace.events[moment.event];
  const std::uint64_t live = moment.allocated + moment.pending;
  const FreeSpace space = subject.free_space(event.device, moment.event);
  Shortage shortage;
  shortage.requested = ByteInterval::exactly(event.size_bytes);
  shortage.segment = ByteInterval::exactly(torch_segment_sizes(trace).segment_bytes(event.size_bytes));
  shortage.live = ByteInterval::exactly(live);
  shortage.reserved = ByteInterval::exactly(moment.reserved);
  shortage.idle = *shortage.reserved - *shortage.live;
  shortage.returnable = ByteInterval::exactly(space.returnable_bytes);
  shortage.largest_piece = ByteInterval::exactly(space.largest_free_bytes);
  for (const SegmentPicture& segment : space.segments) {
    if (segment.stream != event.stream) shortage.other_streams = shortage.other_streams + ByteInterval::exactly(segment.free_bytes());
  }
  if (event.has(kHasDeviceFree)) shortage.free = ByteInterval::exactly(event.address);
  if (device.capacity_bytes != 0) shortage.capacity = ByteInterval::exactly(device.capacity_bytes);
  if (device.allowed_bytes != 0) shortage.allowed = ByteInterval::exactly(device.allowed_bytes);
  const UsageMoment& fullest = subject.facts().usage[slot].peak_reserved;
  shortage.allowed_so_far = ByteInterval::exactly(std::max(device.allowed_bytes, fullest.event <= moment.event ? fullest.reserved : moment.reserved));
  if (const auto unasked = unasked_memory(trace, device)) shortage.before_start = ByteInterval::exactly(unasked->before_start);
  return shortage;
}

// Settings that could have served the request, each replayed with the room that was there.
void try_settings(Case& subject, std::size_t slot, const Shortage& shortage, const UsageMoment& moment, Finding& finding) {
  if (!subject.model_is_trusted(slot) || (finding.cause != "fragmented" && finding.cause != "own-limit" && finding.cause != "exhausted")) return;
  const DeviceUsage& usage = subject.facts().usage[slot];
  const std::uint64_t device_free = shortage.free ? shortage.free->max : 0, allowed = shortage.allowed ? shortage.allowed->max : 0;
  const bool own_limit = device_free >= shortage.segment.max + kDriverMarginBytes;
  const std::uint64_t room = own_limit ? std::max(usage.peak_reserved.reserved, allowed) : moment.reserved + device_free;
  const auto served = [&](const ReplayResult* answer) {
    if (answer == nullptr) return false;
    return std::none_of(answer->failures.begin(), answer->failures.end(), [&](const ReplayFailure& f) { return f.event <= moment.event; });
  };
  if (surely_at_least(ByteInterval::exactly(room), *shortage.live + shortage.requested)) {
    for (const SettingChanges& changes : proposed_settings()) {
      const ReplayResult* answer = subject.what_if(slot, changes, room);
      if (!served(answer)) continue;
      const std::uint64_t saves = usage.peak_reserved.reserved > answer->peak_reserved_bytes ? usage.peak_reserved.reserved - answer->peak_reserved_bytes : 0;
      finding.tries.push_back({"Set PYTORCH_CUDA_ALLOC_CONF=" + written(changes) + " before the program starts; the same requests then get through in the " +
                                   format_bytes(room) + " that were there.", true, saves});
      break;
    }
  }
  if (own_limit) {
    const SettingChanges lifted = allowed != 0 ? SettingChanges{{"per_process_memory_fraction", "1"}} : SettingChanges{};
    const ReplayResult* answer = subject.what_if(slot, lifted, room + device_free);
    if (served(answer)) {
      finding.tries.push_back({"Raise or remove the limit (torch.cuda.set_per_process_memory_fraction, or per_process_memory_fraction in PYTORCH_CUDA_ALLOC_CONF): the "
                               "recording then needs " + format_bytes(answer->peak_reserved_bytes) + " and this request is served.", true, 0});
    }
  }
}

Finding describe_failure(Case& subject, std::size_t slot, const UsageMoment& moment, std::uint64_t times) {
  const Facts& facts = subject.facts();
  const Event& event = subject.trace().events[moment.event];
  const Shortage shortage = shortage_of(subject, slot, moment);
  const CauseVerdict verdict = cause_of(shortage);
  const Whereabouts where = whereabouts(facts, slot, moment.event);
  Finding finding = finding_at(facts, "memory/out-of-memory", Severity::kError, verdict.confidence, event.device, event.stack);
  finding.cause = verdict.cause();
  finding.location = where.location;
  finding.call_path = where.callers;
  finding.bytes = event.size_bytes;
  finding.count = times;
  finding.message = format_bytes(event.size_bytes) + " were asked for" + (where.in_backward ? " in backward" : "") + ": " + verdict.why + ".";
  if (where.in_backward && event.stack.value == 0) {
    finding.memory = "A result of backward; Python has no line for it, the place shown is where backward() was called.";
  } else if (where.is_guess) {
    finding.memory = "The request was recorded without a stack; the place shown is the last line of the program seen before it.";
  } else if (const std::string request = describe_request(facts, moment.event); !request.empty()) {
    finding.memory = "It was for " + request + ".";
  }
  const auto add = [&](const char* name, const std::optional<ByteInterval>& bytes) {
    if (bytes) add_evidence(finding, name, bytes->max);
  };
  add("requested_bytes", shortage.requested);
  add("allocated_bytes", shortage.live);
  add("reserved_bytes", shortage.reserved);
  add("reserved_but_free_bytes", shortage.idle);
  add("largest_free_piece_bytes", shortage.largest_piece);
  if (shortage.other_streams.max != 0) add("free_on_other_streams_bytes", shortage.other_streams);
  add("device_free_bytes", shortage.free);
  add("device_capacity_bytes", shortage.capacity);
  if (verdict.story == Story::kLimit) {
    add("limit_bytes", shortage.allowed);
    if (!shortage.allowed) add("limit_at_least_bytes", shortage.allowed_so_far);
    if (!shortage.allowed) add("limit_below_bytes", *shortage.reserved + shortage.segment);
  }
  add_evidence(finding, "inequality", verdict.inequality);
  finding.holders = holders_at(facts, slot, moment.event);
  try_settings(subject, slot, shortage, moment, finding);
  AdviceContext context;
  context.live = facts.live_by_category(slot, moment.event);
  context.makes_optimizer_state = facts.stacks.has(event.stack, kInitsOptimizer);
  advise(verdict, context, finding);
  finding.fingerprint = fingerprint(finding.rule, finding.location, finding.cause);
  return finding;
}

}  // namespace

void judge_out_of_memory(Case& subject, std::vector<Finding>& findings, std::vector<NotJudged>&) {
  const Facts& facts = subject.facts();
  const ErrorKind stated = subject.statements().error.kind;
  const bool is_stated = stated == ErrorKind::kOutOfMemory || stated == ErrorKind::kPoolGrowth || stated == ErrorKind::kLibraryMemory;
  const bool is_recorded = !subject.statements().message_only && std::any_of(facts.usage.begin(), facts.usage.end(), [](const DeviceUsage& usage) { return !usage.failures.empty(); });
  if (is_stated && !is_recorded) findings.push_back(describe_message(subject));
  for (std::size_t slot = 0; is_recorded && slot < facts.usage.size(); ++slot) {
    // Failures of one line are one finding, told by its last occurrence; the last of all, which the program is most likely to have died
    // of, comes first.
    struct Group {
      const UsageMoment* last = nullptr;
      std::uint64_t times = 0;
    };
    std::map<std::tuple<FrameId, bool, bool>, Group> by_line;
    for (const UsageMoment& moment : facts.usage[slot].failures) {
      const StackId stack = subject.trace().events[moment.event].stack;
      const bool of_driver = is_driver_request(subject.trace(), subject.trace().events[moment.event]);
      Group& group = by_line[{subject.trace().stacks.frame_id(facts.stacks.user(stack)), stack.value == 0, of_driver}];
      group.last = &moment;
      ++group.times;
    }
    std::vector<Group> groups;
    for (const auto& [line, group] : by_line) groups.push_back(group);
    std::sort(groups.begin(), groups.end(), [](const Group& a, const Group& b) { return a.last->event > b.last->event; });
    for (const Group& group : groups) {
      const bool of_driver = is_driver_request(subject.trace(), subject.trace().events[group.last->event]);
      findings.push_back(of_driver ? describe_driver_failure(subject, slot, *group.last, group.times) : describe_failure(subject, slot, *group.last, group.times));
    }
  }
}

}  // namespace faultline
