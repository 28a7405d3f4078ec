#include "rules/illegal_address/suspects.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <span>
#include <string_view>

#include "base/units.h"
#include "facts/kernel_name.h"
#include "rules/memory_words.h"

namespace faultline {
namespace {

// PyTorch's history and the driver's record are joined by their clocks
constexpr std::uint64_t kClockErrorNs = 1'000'000;
constexpr std::uint64_t kWidestAccess = 16;
constexpr std::size_t kLeastNameToLookFor = 6;  // shorter ones are words

// How a kernel fared on the device of the fault, in launches that were waited for, and so are known to have ended well.
struct Past {
  std::uint64_t times = 0;
  std::set<std::pair<Extent3, Extent3>> shapes;
  std::set<LaunchId> exactly;  // with the same pointers too
};

bool contains_any(std::string_view text, std::span<const std::string_view> marks) {
  return std::any_of(marks.begin(), marks.end(),
                     [&](std::string_view mark) { return text.find(mark) != std::string_view::npos; });
}

bool is_library_kernel(std::string_view name) {
  static constexpr std::array<std::string_view, 21> kMarks = {
      "at::",  "c10::",    "cunn_",    "cub::", "thrust::",  "cutlass",   "cublas",
      "cudnn", "cusparse", "cusolver", "nccl",  "gemm",      "splitK",    "nvjet",
      "xmma",  "fmha",     "convolve", "_fft",  "flash_fwd", "flash_bwd", "cupy_"};
  return contains_any(name, kMarks);
}

// PyTorch's other kernels that check what they are given: samplers, losses, torch._assert_async.
bool checks_values(std::string_view name) {
  static constexpr std::array<std::string_view, 4> kMarks = {"ultinomial", "cross_entropy", "assert", "check"};
  return contains_any(name, kMarks);
}

std::uint64_t product(const Extent3& extent) {
  std::uint64_t result = 1;
  for (const std::uint32_t part : extent)
    result = result < (std::uint64_t{1} << 40) ? result * std::max(part, 1u) : result;
  return result;
}

// The memory behind pointers that kernels were given, looked up for all of them in one pass over the allocations.
class GivenMemory {
 public:
  struct Memory {
    AllocationId block;    // the program's own that was last handed out there
    AllocationId segment;  // what it lies in, or what else holds the address
  };

  GivenMemory(const Facts& facts, const Candidates& candidates, std::uint32_t report) {
    const Trace& trace = facts.trace;
    for (const Candidate& candidate : candidates.kernels) {
      for (const LaunchArgument& argument : trace.launches.at(candidate.launch).arguments)
        at_.try_emplace(argument.address);
    }
    facts.lifetimes.for_each([&](AllocationId id, const Lifetime& life, const Event& birth) {
      if (life.born > report || !birth.has(kAddressKnown) || birth.size_bytes > ~birth.address) return;
      const bool is_own = facts.uses.is_program(birth.heap);
      for (auto at = at_.lower_bound(birth.address); at != at_.end() && at->first < birth.address + birth.size_bytes;
           ++at) {
        AllocationId& known = is_own ? at->second.block : at->second.segment;
        if (known.value == 0 || facts.lifetimes.of(known).born <= life.born) known = id;
      }
    });
  }

  Memory behind(std::uint64_t address) const { return at_.at(address); }

 private:
  std::map<std::uint64_t, Memory> at_;
};

class Scale {
 public:
  Scale(const Facts& facts, const Statements& statements, const Candidates& candidates, FaultKind kind,
        std::uint32_t report)
      : facts_(facts),
        trace_(facts.trace),
        statements_(statements),
        kind_(kind),
        knows_past_(trace_.can(kCompleteFromStart) && candidates.complete),
        given_(facts, candidates, report) {
    if (!knows_past_) return;
    const std::set<std::uint32_t> under_way(candidates.events.begin(), candidates.events.end());
    std::set<StringId> wanted;
    for (const Candidate& candidate : candidates.kernels) wanted.insert(trace_.launches.at(candidate.launch).kernel);
    for (std::uint32_t index = 0; index < report; ++index) {
      const Event& event = trace_.events[index];
      if (event.kind != EventKind::kLaunch || event.device != trace_.events[report].device || event.has(kFailed) ||
          event.has(kCaptured) || event.extra >= trace_.launches.size() || under_way.contains(index))
        continue;
      const Launch& launch = trace_.launches.at(LaunchId(event.extra));
      if (!wanted.contains(launch.kernel)) continue;
      Past& past = past_[launch.kernel];
      ++past.times;
      past.shapes.emplace(launch.grid, launch.block);
      past.exactly.insert(LaunchId(event.extra));
    }
  }

  Suspect weigh(const Candidate& candidate) {
    Suspect suspect;
    suspect.candidate = candidate;
    const Launch& launch = trace_.launches.at(candidate.launch);
    const std::string name = kernel_name(trace_.strings.at(launch.kernel));
    suspect.is_library = is_library_kernel(name);
    suspect.checks_index = checks_index(name) || checks_index(trace_.strings.at(launch.kernel));
    if (launch.graph != 0) return suspect;
    if (kind_ == FaultKind::kAssert)
      weigh_check(name, suspect);
    else if (kind_ == FaultKind::kMisaligned)
      weigh_alignment(launch, suspect);
    if (kind_ != FaultKind::kAssert) weigh_memory(launch, candidate.event, suspect);
    weigh_past(launch, candidate.launch, suspect);
    weigh_message(name, suspect);
    if (!suspect.is_library) against_or_for(suspect, 3, "is not a kernel of a known library");
    return suspect;
  }

 private:
  static void against_or_for(Suspect& suspect, int points, std::string sentence) {
    suspect.points += points;
    (points > 0 ? suspect.speaks_for : suspect.speaks_against).push_back(std::move(sentence));
  }

  static void weigh_check(const std::string& name, Suspect& suspect) {
    if (suspect.checks_index)
      against_or_for(suspect, 6, "checks its indices on the device");
    else if (checks_values(name))
      against_or_for(suspect, 4, "checks its values on the device");
    else if (suspect.is_library)
      against_or_for(suspect, -2, "is not known to check anything");
  }

  // Some builds of PyTorch, and some libraries, name the kernel in the error that they raise.
  void weigh_message(const std::string& name, Suspect& suspect) const {
    const std::size_t scope = name.rfind("::");
    const std::string own_name = scope == std::string::npos ? name : name.substr(scope + 2);
    if (own_name.size() < kLeastNameToLookFor ||
        statements_.ending.exception_message.find(own_name) == std::string::npos)
      return;
    against_or_for(suspect, 5, "is named in the error that ended the program");
  }

  static void weigh_alignment(const Launch& launch, Suspect& suspect) {
    if (launch.arguments.empty()) return;
    const auto odd = std::find_if(launch.arguments.begin(), launch.arguments.end(),
                                  [](const LaunchArgument& argument) { return argument.address % kWidestAccess != 0; });
    if (odd == launch.arguments.end())
      return against_or_for(suspect, -1, "was given only pointers that are multiples of 16");
    against_or_for(suspect, 4,
                   "was given a pointer that is no multiple of 16 (its parameter at byte " +
                       std::to_string(odd->offset_bytes) + ")");
  }

  // Known to have been freed before the launch: the driver's own record is in order; PyTorch's is told from it by clocks.
  bool was_freed_before(AllocationId allocation, std::uint32_t launch_event) const {
    const std::uint32_t released = facts_.lifetimes.of(allocation).released;
    if (released >= launch_event) return false;
    const Event& birth = facts_.lifetimes.birth(allocation);
    if (!facts_.uses.is_program(birth.heap) || !facts_.uses.has_framework(birth.device) || !trace_.can(kTimes))
      return true;
    const std::int64_t launch_ns = trace_.events[launch_event].time_ns, released_ns = trace_.events[released].time_ns;
    return launch_ns > released_ns && static_cast<std::uint64_t>(launch_ns) - static_cast<std::uint64_t>(released_ns) >=
                                          kClockErrorNs;  // a damaged file's times may be anything
  }

  void weigh_memory(const Launch& launch, std::uint32_t event, Suspect& suspect) const {
    std::uint64_t largest_bytes = 0;
    bool all_known = !launch.arguments.empty();
    for (const LaunchArgument& argument : launch.arguments) {
      const GivenMemory::Memory memory = given_.behind(argument.address);
      const AllocationId holder = memory.block.value != 0 ? memory.block : memory.segment;
      const std::string which = " (its parameter at byte " + std::to_string(argument.offset_bytes) + ")";
      if (holder.value != 0 && !was_freed_before(holder, event)) {
        const Event& birth = facts_.lifetimes.birth(holder);
        largest_bytes = std::max(largest_bytes, birth.address + birth.size_bytes - argument.address);
        all_known = all_known && (memory.block.value != 0 || !facts_.uses.has_framework(birth.device));
        continue;
      }
      all_known = false;
      if (holder.value != 0)
        against_or_for(suspect, 8, "was given memory that had been freed: " + memory_words(facts_, holder) + which);
      else if (trace_.can(kCompleteFromStart))
        against_or_for(suspect, 4, "was given a pointer to no memory that the recording knows of" + which);
    }
    if (!all_known || kind_ == FaultKind::kMisaligned) return;
    // Blocks are whole: the last one's threads may have nothing to do.
    const std::uint64_t block = product(launch.block), threads = product(launch.grid) * block;
    const std::uint64_t at_least = threads - std::min(threads, block) + 1;
    const std::string excess = "has " + format_count(threads) +
                               " threads, and of all that it was given the largest has " +
                               distance_words(largest_bytes);
    if (at_least > largest_bytes)
      against_or_for(suspect, 4, excess);
    else if (at_least * 4 > largest_bytes)
      against_or_for(suspect, 2, excess + ": too little for 4 bytes each");
  }

  void weigh_past(const Launch& launch, LaunchId id, Suspect& suspect) const {
    if (!knows_past_) return;
    const auto found = past_.find(launch.kernel);
    if (found == past_.end()) return against_or_for(suspect, 2, "had not run before");
    const Past& past = found->second;
    const std::string times = past.times == 1 ? "once" : format_count(past.times) + " times";
    if (past.exactly.contains(id) && !launch.arguments.empty())
      against_or_for(suspect, -3, "ran well before with the same grid and pointers");
    else if (past.shapes.contains({launch.grid, launch.block}))
      against_or_for(suspect, -1, "ran well " + times + " before, also with this grid");
    else
      against_or_for(suspect, 1, "ran well " + times + " before, but never with this grid");
  }

  const Facts& facts_;
  const Trace& trace_;
  const Statements& statements_;
  FaultKind kind_;
  bool knows_past_;  // the recording begins with the program, and all that was under way is known
  GivenMemory given_;
  std::map<StringId, Past> past_;
};

std::string joined(const std::vector<std::string>& sentences) {
  std::string text;
  for (const std::string& sentence : sentences)
    text += (text.empty() ? "it " : &sentence == &sentences.back() ? " and " : ", ") + sentence;
  return text;
}

}  // namespace

std::vector<Suspect> weigh(const Facts& facts, const Statements& statements, const Candidates& candidates,
                           FaultKind kind, std::uint32_t report_event) {
  Scale scale(facts, statements, candidates, kind, report_event);
  std::vector<Suspect> suspects;
  for (const Candidate& candidate : candidates.kernels) suspects.push_back(scale.weigh(candidate));
  std::stable_sort(suspects.begin(), suspects.end(),
                   [](const Suspect& a, const Suspect& b) { return a.points > b.points; });
  return suspects;
}

bool has_leader(const std::vector<Suspect>& suspects) {
  if (suspects.size() < 2) return suspects.size() == 1;
  return suspects[0].points >= kClearLead && suspects[0].points - suspects[1].points >= kClearLead;
}

std::string reasons(const Suspect& suspect) {
  std::string text = joined(suspect.speaks_for);
  if (!suspect.speaks_against.empty())
    text += (text.empty() ? "against: " : "; against: ") + joined(suspect.speaks_against);
  return text;
}

}  // namespace faultline
