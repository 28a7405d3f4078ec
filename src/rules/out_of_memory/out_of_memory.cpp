#include "rules/out_of_memory/out_of_memory.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/units.h"
#include "facts/outside.h"
#include "rules/describe.h"
#include "rules/out_of_memory/driver_request.h"
#include "rules/out_of_memory/request.h"
#include "rules/settings_to_try.h"

namespace faultline {
namespace {

// What the driver is asked for to serve a request: PyTorch takes memory in segments.
std::uint64_t segment_bytes_for(std::uint64_t request_bytes) {
  if (request_bytes <= kMiB) return 2 * kMiB;
  if (request_bytes < 10 * kMiB) return 20 * kMiB;
  return (request_bytes + 2 * kMiB - 1) / (2 * kMiB) * (2 * kMiB);
}

// A free device can refuse the last few pages to itself; beyond this margin a refusal was not the driver's.
constexpr std::uint64_t kDriverMarginBytes = 256 * kMiB;
// Memory outside the framework is normal (context, libraries) up to about this much.
constexpr std::uint64_t kUsualOutsideBytes = 3 * kGiB / 2;

struct Failure {
  const UsageMoment* moment = nullptr;
  std::uint64_t request = 0;
  std::uint64_t segment = 0;
  std::uint64_t device_free = 0;
  bool device_free_known = false;
  std::uint64_t capacity = 0;  // 0: unknown
  std::uint64_t allowed = 0;   // the program's own limit, when the input states it
  std::uint64_t limit_at_least = 0;  // what the program's own limit, if there is one, has allowed so far
  FreeSpace space;
  std::uint64_t before_start = 0;  // taken of the device before the program asked for anything; 0: not known
  std::uint64_t other_streams_free = 0;  // free bytes in segments of streams other than the request's: a block serves its own stream only
  std::uint64_t live() const { return moment->allocated + moment->pending; }
  std::uint64_t waste() const { return moment->reserved > live() ? moment->reserved - live() : 0; }
  std::uint64_t outside() const {
    const std::uint64_t known = moment->reserved + device_free;
    return capacity > known ? capacity - known : 0;
  }
};

struct Cause {
  std::string name;
  Confidence confidence = Confidence::kProved;
  std::string why;  // continues "N were asked for: …"
};

Cause cause_of(const Failure& f) {
  const std::string held = "PyTorch held " + format_bytes(f.moment->reserved) + ", " + format_bytes(f.live()) + " of it in use";
  const bool had_room = f.device_free_known && f.device_free >= f.segment + kDriverMarginBytes;
  if (f.capacity != 0 && f.request > f.capacity) {
    return {"exhausted", Confidence::kProved, "the device has " + format_bytes(f.capacity) + " in all, so no setting can help"};
  }
  if (f.space.returnable_bytes >= f.segment && f.space.returnable_bytes > f.space.pinned_free_bytes) {
    return {"idle-cache", Confidence::kLikely,
            "PyTorch still cached " + format_bytes(f.space.returnable_bytes) + " in whole free segments that it did not give back at that moment"};
  }
  if (f.waste() >= f.request && f.live() + f.request <= f.moment->reserved) {
    return {"fragmented", Confidence::kProved, format_bytes(f.waste()) + " of the " + format_bytes(f.moment->reserved) +
            " that PyTorch had reserved were free, but in pieces of at most " + format_bytes(f.space.largest_free_bytes) + " between live tensors" +
            (f.other_streams_free == 0 ? "" : ", " + format_bytes(f.other_streams_free) + " of it kept for other streams")};
  }
  if (had_room && f.waste() > 0 && f.live() + f.request <= f.limit_at_least) {
    return {"fragmented", Confidence::kProved, format_bytes(f.waste()) + " of the " + format_bytes(f.moment->reserved) +
            " that PyTorch had reserved were free in pieces of at most " + format_bytes(f.space.largest_free_bytes) +
            " between live tensors; without them the request would fit the program's own memory limit, which is at least " + format_bytes(f.limit_at_least)};
  }
  if (had_room) {
    const std::string limit = f.allowed != 0 ? "limit of " + format_bytes(f.allowed)
                                             : "limit (between " + format_bytes(f.limit_at_least) + " and " + format_bytes(f.moment->reserved + f.segment) + ")";
    return {"own-limit", Confidence::kProved, "the device had " + format_bytes(f.device_free) + " free, but the program's own memory " + limit +
            " was reached; " + held};
  }
  if (!f.device_free_known) return {"", Confidence::kHint, held + "; how much the device had free is not recorded"};
  if (f.live() + f.request <= f.moment->reserved + f.device_free && f.waste() > 0) {
    return {"fragmented", Confidence::kLikely, format_bytes(f.waste()) + " that PyTorch had reserved were free in pieces of at most " +
            format_bytes(f.space.largest_free_bytes) + "; together with the device's " + format_bytes(f.device_free) + " the request would fit"};
  }
  const std::string numbers = held + ", and the device had " + format_bytes(f.device_free) + " free";
  if (f.capacity != 0) {
    if (f.before_start > kUsualOutsideBytes && f.live() + f.request <= f.capacity - std::min(f.capacity, f.outside() - std::min(f.outside(), f.before_start)) - kUsualOutsideBytes) {
      return {"other-process", Confidence::kLikely,
              format_bytes(f.before_start) + " of the device were taken before this program asked for anything, most of it by other processes; " + numbers};
    }
    if (f.outside() > kUsualOutsideBytes && f.live() + f.request <= f.capacity - std::min(f.capacity, kUsualOutsideBytes)) {
      return {"outside-framework", Confidence::kLikely,
              format_bytes(f.outside()) + " of the device were held outside PyTorch's allocator (other processes, other libraries, the CUDA context); " + numbers};
    }
    return {"exhausted", Confidence::kProved, numbers + " of " + format_bytes(f.capacity)};
  }
  // Without the device's size others may hold the rest. Where PyTorch has little of what can be seen, and a device twice as large would do, that is
  // as good an explanation.
  const std::uint64_t visible = f.moment->reserved + f.device_free;
  const bool could_be_others = f.live() < visible / 2 && f.live() + f.request <= 2 * visible;
  return {"exhausted", could_be_others ? Confidence::kHint : Confidence::kLikely,
          numbers + "; the recording does not say how large the device is, so what others held is not known (--gpu SIZE tells)"};
}

// Settings that could have served the request, each replayed with the room that was there.
void try_settings(Case& subject, std::size_t slot, const Failure& failure, const Cause& cause, Finding& finding) {
  if (!subject.model_is_trusted(slot) || (cause.name != "fragmented" && cause.name != "own-limit" && cause.name != "exhausted")) return;
  const DeviceUsage& usage = subject.facts().usage[slot];
  const bool own_limit = failure.device_free_known && failure.device_free >= failure.segment + kDriverMarginBytes;
  std::uint64_t room = own_limit ? std::max(usage.peak_reserved.reserved, failure.allowed) : failure.moment->reserved + failure.device_free;
  const auto served = [&](const ReplayResult* answer) {
    if (answer == nullptr) return false;
    return std::none_of(answer->failures.begin(), answer->failures.end(), [&](const ReplayFailure& f) { return f.event <= failure.moment->event; });
  };
  if (failure.live() + failure.request <= room) {
    for (const SettingToTry& option : settings_to_try()) {
      const ReplayResult* answer = subject.what_if(slot, option.changes, room);
      if (!served(answer)) continue;
      const std::uint64_t saves = usage.peak_reserved.reserved > answer->peak_reserved_bytes ? usage.peak_reserved.reserved - answer->peak_reserved_bytes : 0;
      finding.tries.push_back({std::string("Set PYTORCH_CUDA_ALLOC_CONF=") + option.written + " before the program starts; the same requests then get through in the " +
                                   format_bytes(room) + " that were there.", true, saves});
      break;
    }
  }
  if (own_limit) {
    const SettingChanges lifted = failure.allowed != 0 ? SettingChanges{{"per_process_memory_fraction", "1"}} : SettingChanges{};
    const ReplayResult* answer = subject.what_if(slot, lifted, room + failure.device_free);
    if (served(answer)) {
      finding.tries.push_back({"Raise or remove the limit (torch.cuda.set_per_process_memory_fraction, or per_process_memory_fraction in PYTORCH_CUDA_ALLOC_CONF): the "
                               "recording then needs " + format_bytes(answer->peak_reserved_bytes) + " and this request is served.", true, 0});
    }
  }
}

void advise(const Cause& cause, const Failure& failure, const CategoryBytes& live, bool makes_optimizer_state, Finding& finding) {
  if (failure.capacity != 0 && failure.request > failure.capacity) {
    finding.tries.push_back({"Make the tensor in pieces, or smaller: it is " + format_bytes(failure.request) + " alone.", std::nullopt, 0});
    return;
  }
  if (cause.name == "outside-framework" || cause.name == "other-process") {
    finding.tries.push_back({"Run `nvidia-smi` to see which processes hold the device, and look for libraries of this process that allocate by themselves.", std::nullopt, 0});
    return;
  }
  if (cause.name != "exhausted" && cause.name != "own-limit") return;
  if (makes_optimizer_state) {
    finding.tries.push_back({"The optimizer was making its state (Adam keeps two more values for each parameter): SGD, an 8-bit Adam, or sharding it over devices "
                             "shrinks it.", std::nullopt, 0});
    return;
  }
  const auto largest = static_cast<Category>(std::max_element(live.begin(), live.end()) - live.begin());
  if (largest == Category::kActivations || largest == Category::kTemporaries) {
    finding.tries.push_back({"Activations and temporaries are the largest part: a smaller batch, or torch.utils.checkpoint around the layers, shrinks them.", std::nullopt, 0});
  } else if (largest == Category::kOptimizer) {
    finding.tries.push_back({"The optimizer's state is the largest part: SGD, an 8-bit Adam, or sharding it over devices shrinks it.", std::nullopt, 0});
  } else if (largest == Category::kParameters) {
    finding.tries.push_back({"The parameters are the largest part: bfloat16 or quantised weights halve or quarter them.", std::nullopt, 0});
  }
}

Finding describe_failure(Case& subject, std::size_t slot, const UsageMoment& moment, std::uint64_t times) {
  const Facts& facts = subject.facts();
  const Trace& trace = subject.trace();
  const Event& event = trace.events[moment.event];
  Failure failure;
  failure.moment = &moment;
  failure.request = event.size_bytes;
  failure.segment = segment_bytes_for(event.size_bytes);
  failure.device_free_known = event.has(kHasDeviceFree);
  failure.device_free = failure.device_free_known ? event.address : 0;
  failure.capacity = trace.devices[slot].capacity_bytes;
  failure.allowed = trace.devices[slot].allowed_bytes;
  if (const auto unasked = unasked_memory(trace, trace.devices[slot])) failure.before_start = unasked->before_start;
  const UsageMoment& fullest = facts.usage[slot].peak_reserved;
  failure.limit_at_least = std::max(failure.allowed, fullest.event <= moment.event ? fullest.reserved : moment.reserved);
  failure.space = picture_free_space(trace, facts.lifetimes, event.device, moment.event);
  for (const SegmentPicture& segment : failure.space.segments) {
    if (segment.stream != event.stream) failure.other_streams_free += segment.free_bytes();
  }

  const Cause cause = cause_of(failure);
  const Whereabouts where = whereabouts(facts, slot, moment.event);
  const CategoryBytes live = facts.live_by_category(slot, moment.event);
  Finding finding;
  finding.rule = "memory/out-of-memory";
  finding.severity = Severity::kError;
  finding.confidence = cause.confidence;
  finding.cause = cause.name;
  finding.device = event.device;
  finding.location = where.location;
  finding.call_path = where.callers;
  finding.bytes = event.size_bytes;
  finding.count = times;
  finding.message = format_bytes(event.size_bytes) + " were asked for" + (where.in_backward ? " in backward" : "") + ": " + cause.why + ".";
  if (where.in_backward && event.stack.value == 0) {
    finding.memory = "A result of backward; Python has no line for it, the place shown is where backward() was called.";
  } else if (where.is_guess) {
    finding.memory = "The request was recorded without a stack; the place shown is the last line of the program seen before it.";
  } else if (const std::string request = describe_request(facts, moment.event); !request.empty()) {
    finding.memory = "It was for " + request + ".";
  }
  finding.evidence = {{"requested_bytes", static_cast<std::int64_t>(event.size_bytes)},
                      {"allocated_bytes", static_cast<std::int64_t>(failure.live())},
                      {"reserved_bytes", static_cast<std::int64_t>(moment.reserved)},
                      {"reserved_but_free_bytes", static_cast<std::int64_t>(failure.waste())},
                      {"largest_free_piece_bytes", static_cast<std::int64_t>(failure.space.largest_free_bytes)}};
  if (failure.other_streams_free != 0) finding.evidence.push_back({"free_on_other_streams_bytes", static_cast<std::int64_t>(failure.other_streams_free)});
  if (failure.device_free_known) finding.evidence.push_back({"device_free_bytes", static_cast<std::int64_t>(failure.device_free)});
  if (failure.capacity != 0) finding.evidence.push_back({"device_capacity_bytes", static_cast<std::int64_t>(failure.capacity)});
  if (cause.name == "own-limit") {
    if (failure.allowed != 0) {
      finding.evidence.push_back({"limit_bytes", static_cast<std::int64_t>(failure.allowed)});
    } else {
      finding.evidence.push_back({"limit_at_least_bytes", static_cast<std::int64_t>(failure.limit_at_least)});
      finding.evidence.push_back({"limit_below_bytes", static_cast<std::int64_t>(moment.reserved + failure.segment)});
    }
  }
  finding.holders = holders_at(facts, slot, moment.event);
  try_settings(subject, slot, failure, cause, finding);
  advise(cause, failure, live, facts.stacks.has(event.stack, kInitsOptimizer), finding);
  finding.fingerprint = fingerprint(finding.rule, finding.location, finding.cause);
  return finding;
}

}  // namespace

void judge_out_of_memory(Case& subject, std::vector<Finding>& findings, std::vector<NotJudged>&) {
  const Facts& facts = subject.facts();
  for (std::size_t slot = 0; slot < facts.usage.size(); ++slot) {
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
