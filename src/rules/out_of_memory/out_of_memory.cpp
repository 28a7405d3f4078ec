#include "rules/out_of_memory/out_of_memory.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/units.h"
#include "fmt/format.h"
#include "models/search.h"
#include "rules/describe.h"
#include "rules/out_of_memory/advice.h"
#include "rules/out_of_memory/pool.h"
#include "rules/out_of_memory/request.h"
#include "rules/stated_error.h"
#include "sources/rule_names.h"

namespace faultline {

namespace {

// Settings that could have served the request, each replayed with the room that was there; whether lifting the limit is one of them.
bool try_settings(Case& subject, std::size_t slot, const Shortage& shortage, const UsageMoment& moment,
                  Finding& finding) {
  if (!subject.model_is_trusted(slot) ||
      (finding.cause != "fragmented" && finding.cause != "own-limit" && finding.cause != "exhausted"))
    return false;
  const std::uint64_t device_free = shortage.free ? shortage.free->max : 0;
  const std::uint64_t room = segment_room(shortage, subject.facts().usage[slot], moment);
  // A dry run went on past the failure; a recording says nothing of what the program would have asked for next.
  const std::string all =
      shortage.whole_live ? "all that the program asks for is then served" : std::string(kServedThen);
  const auto served = [](const ReplayResult* answer) { return answer != nullptr && answer->failure_count == 0; };
  if (surely_at_least(ByteInterval::exactly(room), *shortage.live + shortage.requested)) {
    const std::uint16_t device = subject.trace().devices[slot].index;
    for (const SettingChanges& changes : proposed_settings(subject.trace(), device)) {
      if (!served(subject.what_if(slot, changes, room))) continue;
      finding.tries.push_back({instruction(subject.trace(), device, changes) + ": in the " + format_bytes(room) +
                                   " that were there " + all + ".",
                               true, 0});
      break;
    }
  }
  if (stopped_by_limit(shortage)) {
    const SettingChanges lifted =
        shortage.allowed ? SettingChanges{{"per_process_memory_fraction", "1"}} : SettingChanges{};
    const ReplayResult* answer = subject.what_if(slot, lifted, moment.reserved + device_free);
    if (served(answer)) {
      finding.tries.push_back(
          {"Raise or remove the limit (torch.cuda.set_per_process_memory_fraction, or per_process_memory_fraction in "
           "PYTORCH_CUDA_ALLOC_CONF): with " +
               format_bytes(answer->peak_reserved_bytes) + " " + all + ".",
           true, 0});
      return true;
    }
  }
  return false;
}

// Parameters that are twice as large as half precision would make them.
std::uint64_t float32_parameter_bytes(const Facts& facts, std::size_t slot, std::uint32_t event) {
  std::uint64_t bytes = 0;
  facts.lifetimes.for_each([&](AllocationId id, const Lifetime& life, const Event& birth) {
    if (!life.alive_at(event) || birth.device != facts.usage[slot].device || !facts.uses.is_program(birth.heap) ||
        birth.kind != EventKind::kAlloc || birth.extra == 0)
      return;
    if (facts.categories[slot].of(id) != Category::kParameters ||
        facts.trace.strings.at(facts.trace.tensors.at(TensorId(birth.extra)).dtype) != "float32")
      return;
    bytes += facts.lifetimes.held_bytes(id);
  });
  return bytes;
}

// In a pool of TensorFlow's or JAX's. Where the input is a state alone, the failure may be one that the program got over.
Finding describe_pool_failure(Case& subject, std::size_t slot, const UsageMoment& moment, std::uint64_t times) {
  const Event& event = subject.trace().events[moment.event];
  const Whereabouts where = whereabouts(subject.facts(), slot, moment.event);
  Finding finding = finding_at(subject.facts(), rule_name::kOutOfMemory, Severity::kError, Confidence::kProved,
                               event.device, event.stack);
  finding.location = where.location;
  finding.call_path = where.callers;
  finding.count = times;
  tell_pool(subject, {slot, moment}, finding);
  if (const std::string request = describe_request(subject.facts(), moment.event); !request.empty())
    finding.memory = "It was for " + request + ".";
  if (event.size_bytes == 0) finding.severity = Severity::kWarning;
  if (subject.statements().ending.well()) {
    finding.severity = Severity::kWarning;
    finding.memory += std::string(finding.memory.empty() ? "" : " ") + "The program went on and ended well.";
  }
  finding.fingerprint = fingerprint(finding.rule, finding.location, finding.cause);
  return finding;
}

Finding describe_failure(Case& subject, std::size_t slot, const UsageMoment& moment, std::uint64_t times) {
  const Facts& facts = subject.facts();
  const Event& event = subject.trace().events[moment.event];
  if (subject.trace().heaps[event.heap.index()].kind == HeapKind::kBfc)
    return describe_pool_failure(subject, slot, moment, times);
  const Shortage shortage = shortage_of(subject, slot, moment);
  const CauseVerdict verdict = cause_of(shortage);
  const Whereabouts where = whereabouts(facts, slot, moment.event);
  Finding finding =
      finding_at(facts, rule_name::kOutOfMemory, Severity::kError, verdict.confidence, event.device, event.stack);
  finding.cause = verdict.cause();
  finding.location = where.location;
  finding.call_path = where.callers;
  finding.bytes = event.size_bytes;
  finding.count = times;
  add_inside(facts, event.stack, finding);
  finding.message = asked_for(ByteInterval::exactly(event.size_bytes)) + (where.in_backward ? " in backward" : "") +
                    ": " + verdict.why + ".";
  if (where.in_backward && event.stack.value == 0) {
    finding.memory = "A result of backward; Python has no line for it, the place shown is where backward() was called.";
  } else if (where.is_guess) {
    finding.memory =
        "The request was recorded without a stack; the place shown is the last line of the program seen before it.";
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
  add("in_use_at_the_fullest_bytes", shortage.whole_live);
  if (verdict.story == Story::kLimit) {
    add("limit_bytes", shortage.allowed);
    if (!shortage.allowed) add("limit_at_least_bytes", shortage.allowed_so_far);
    if (!shortage.allowed) add("limit_below_bytes", shortage.reserved.value_or(*shortage.live) + shortage.segment);
  }
  add_evidence(finding, "inequality", verdict.inequality);
  const std::uint32_t fullest = shortage.whole_live ? facts.usage[slot].peak_allocated.event : moment.event;
  finding.holders = holders_at(facts, slot, fullest);
  if (shortage.whole_live)
    finding.held_when = fmt::format("the fullest moment, when {} is in use", format_bytes(shortage.whole_live->max));
  AdviceContext context;
  context.tells_limit = try_settings(subject, slot, shortage, moment, finding);
  context.program = program_words(subject);
  context.live = facts.live_by_category(slot, fullest);
  context.when = shortage.whole_live ? " at the fullest" : "";
  context.roles = facts.stacks.roles(event.stack);
  context.float32_parameter_bytes = float32_parameter_bytes(facts, slot, fullest);
  bool trains = !facts.steps.ends.empty();
  for (std::size_t stack = 1; stack < subject.trace().stacks.size(); ++stack) {
    const std::uint16_t roles = facts.stacks.roles(StackId(static_cast<std::uint32_t>(stack)));
    context.recomputes |= (roles & kRecomputes) != 0;
    trains |= (roles & (kInBackward | kInOptimizer)) != 0;
  }
  context.never_trains = !trains && shortage.whole_live && subject.statements().planned_to_end &&
                         !subject.trace().properties.contains("dry-run.stopped");
  advise(verdict, context, finding);
  finding.fingerprint = fingerprint(finding.rule, finding.location, finding.cause);
  return finding;
}

}  // namespace

void judge_out_of_memory(Case& subject, std::vector<Finding>& findings, std::vector<NotJudged>&) {
  const Facts& facts = subject.facts();
  const ErrorKind stated = subject.statements().error.group();
  const bool is_stated =
      stated == ErrorKind::kOutOfMemory || stated == ErrorKind::kPoolGrowth || stated == ErrorKind::kLibraryMemory;
  const bool is_recorded = !subject.statements().message_only &&
                           std::any_of(facts.usage.begin(), facts.usage.end(),
                                       [](const DeviceUsage& usage) { return !usage.failures.empty(); });
  if (is_stated && !is_recorded) {
    findings.push_back(describe_message(subject));
    // further pools of which the text holds a map
    const auto told = pool_failure(subject);
    for (std::size_t slot = 0; slot < facts.usage.size(); ++slot) {
      for (const UsageMoment& moment : facts.usage[slot].failures) {
        if (subject.statements().message_only && (!told || moment.event != told->moment.event) &&
            !is_driver_request(subject.trace(), subject.trace().events[moment.event]))
          findings.push_back(describe_pool_failure(subject, slot, moment, 1));
      }
    }
  }
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
    std::sort(groups.begin(), groups.end(),
              [](const Group& a, const Group& b) { return a.last->event > b.last->event; });
    for (const Group& group : groups) {
      const bool of_driver = is_driver_request(subject.trace(), subject.trace().events[group.last->event]);
      findings.push_back(of_driver ? describe_driver_failure(subject, slot, *group.last, group.times)
                                   : describe_failure(subject, slot, *group.last, group.times));
    }
  }
}

}  // namespace faultline
