// api/bad-copy: a copy or a fill that reaches beyond its memory, or that the driver refused.
//
// Judged against what the driver handed out, not against a framework's blocks inside it: a copy that leaves its tensor but not its segment may be meant.
#include <algorithm>
#include <map>
#include <optional>

#include "base/units.h"
#include "rules/describe.h"
#include "rules/memory_words.h"
#include "rules/refused_call.h"
#include "rules/rule.h"

namespace faultline {
namespace {

constexpr std::size_t kMostLookedInto = 64;

// One end of a copy.
struct End {
  std::uint64_t address = 0;
  std::uint64_t span_bytes = 0;  // from its first byte to its last, rows and what is skipped between them
  MemorySide side = MemorySide::kUnified;
  bool is_source = false;
};

std::uint64_t span_of(const Copy& copy, std::uint64_t size_bytes, std::uint64_t pitch_bytes) {
  if (copy.width_bytes == 0) return size_bytes;
  const std::uint64_t rows = std::uint64_t{std::max(copy.height, 1u)} * std::max(copy.depth, 1u);
  const std::uint64_t pitch = std::max(pitch_bytes, copy.width_bytes);
  if (rows > 1 && pitch > ~0ull / rows) return size_bytes;
  return (rows - 1) * pitch + copy.width_bytes;
}

std::vector<End> ends_of(const Trace& trace, const Event& event) {
  if (event.kind == EventKind::kSet) return {{event.address, event.size_bytes, MemorySide::kDevice, false}};
  const Copy& copy = trace.copies.at(CopyId(event.extra));
  std::vector<End> ends;
  if (copy.destination_side != MemorySide::kArray)
    ends.push_back(
        {event.address, span_of(copy, event.size_bytes, copy.destination_pitch_bytes), copy.destination_side, false});
  if (copy.source_side != MemorySide::kArray)
    ends.push_back({copy.source, span_of(copy, event.size_bytes, copy.source_pitch_bytes), copy.source_side, true});
  return ends;
}

// What the driver handed out and is alive, while the events go by. Registered and imported memory is left out: there is more behind it than was named.
class DriverMemory {
 public:
  explicit DriverMemory(const Facts& facts) : facts_(facts) {}

  void follow(const Event& event) {
    if (event.has(kFailed) || event.allocation.value == 0 || event.size_bytes > ~event.address) return;
    const bool makes = event.kind == EventKind::kAlloc || event.kind == EventKind::kHostPin;
    const bool ends = event.kind == EventKind::kHostUnpin || event.returns_to_heap();
    if (!makes && !ends) return;
    const HeapKind kind = facts_.trace.heaps[event.heap.index()].kind;
    const bool counts = kind == HeapKind::kDriver || kind == HeapKind::kStreamOrderedPool ||
                        kind == HeapKind::kManaged || kind == HeapKind::kPinnedHost;
    if (!counts) return;
    const Event& birth = facts_.lifetimes.birth(event.allocation);
    if (makes && event.has(kAddressKnown))
      hand_out({birth.address + birth.size_bytes, event.allocation, kind, event.has(kPreexisting)}, birth.address);
    if (ends) {
      const auto at = live_.find(birth.address);
      if (at != live_.end() && at->second.id == event.allocation) live_.erase(at);
    }
  }

  // The allocation that holds the first byte of this end, if the end runs out of it.
  std::optional<AllocationId> overrun(const End& end) const {
    auto after = live_.upper_bound(end.address);
    if (after == live_.begin() || end.span_bytes == 0) return std::nullopt;
    const auto& [begin, held] = *std::prev(after);
    if (end.address >= held.end || end.span_bytes <= held.end - end.address) return std::nullopt;
    // Since when memory was there that nobody saw being made is not known: at the time of this copy another may have had its addresses, in the computer's memory as well.
    if (held.since_before) return std::nullopt;
    const bool host_side = end.side == MemorySide::kHost, host_memory = held.kind == HeapKind::kPinnedHost;
    const bool other_side =
        end.side != MemorySide::kUnified && held.kind != HeapKind::kManaged && host_side != host_memory;
    return other_side ? std::nullopt : std::optional(held.id);
  }

 private:
  struct Held {
    std::uint64_t end = 0;
    AllocationId id;
    HeapKind kind = HeapKind::kDriver;
    bool since_before = false;  // before the recording, or before the part of it that told of this memory
  };
  // No byte is handed out twice: what lay there before has ended, seen or not.
  void hand_out(const Held& held, std::uint64_t begin) {
    auto at = live_.upper_bound(begin);
    if (at != live_.begin() && std::prev(at)->second.end > begin) --at;
    while (at != live_.end() && at->first < held.end) at = live_.erase(at);
    live_[begin] = held;
  }

  const Facts& facts_;
  std::map<std::uint64_t, Held> live_;
};

struct Story {
  std::string kind;
  std::string message;
  std::string advice;
  AddressPlace place;
  std::uint64_t too_many_bytes = 0;
};

std::string_view verb(const Event& event, const End& end) {
  return event.kind == EventKind::kSet ? "fills" : end.is_source ? "reads" : "writes";
}

Story overrun_story(const Facts& facts, const Event& event, const End& end, AllocationId id) {
  const Event& birth = facts.lifetimes.birth(id);
  const std::uint64_t offset = end.address - birth.address;
  const std::uint64_t too_many = end.span_bytes - (birth.size_bytes - offset);
  const std::string act = event.kind == EventKind::kSet ? "A fill" : "A copy";
  std::string message = act + " of " + format_bytes(event.size_bytes) + " " + std::string(verb(event, end)) + " " +
                        distance_words(too_many) + " beyond " + memory_words(facts, id);
  if (offset != 0) message += ", from its byte " + format_count(offset) + " on";
  const std::string room = format_count(birth.size_bytes - offset) + " bytes are there from where it begins";
  return {end.is_source ? "source" : "destination",
          message + ".",
          "Check the size that was passed (bytes, not elements): " + room + ", " + format_count(end.span_bytes) +
              " are requested.",
          {Where::kInside, id, offset},
          too_many};
}

// Why the driver refused, where the recording shows it.
std::optional<Story> refused_story(const Facts& facts, std::uint32_t index, const std::vector<End>& ends) {
  const Event& event = facts.trace.events[index];
  const AddressMap map(facts.trace, facts.lifetimes, facts.uses, index);
  const std::string act = event.kind == EventKind::kSet ? "A fill" : "A copy";
  for (const End& end : ends) {
    const std::string name = end.is_source ? "source" : "destination";
    if (end.address == 0)
      return Story{name,
                   act + " of " + format_bytes(event.size_bytes) + " was given a null pointer as its " + name + ".",
                   "Look where the pointer should have been set.",
                   {},
                   0};
    if (map.is_mapped(end.address)) {
      const std::uint64_t last =
          end.span_bytes != 0 && end.span_bytes - 1 <= ~end.address ? end.address + end.span_bytes - 1 : end.address;
      if (end.side != MemorySide::kDevice || map.is_mapped(last)) continue;
      return Story{name,
                   act + " of " + format_bytes(event.size_bytes) + " begins in memory that is there and ends, " +
                       distance_words(last - end.address) + " further on, where none is: its " + name +
                       " is too short.",
                   "Check the size that was passed (bytes, not elements), and how much is mapped there.",
                   {},
                   0};
    }
    const AddressPlace place = map.place(end.address);
    if (place.where == Where::kFreed) {
      return Story{name,
                   act + " of " + format_bytes(event.size_bytes) + " was given a freed " + name + ": " +
                       place_words(facts, place) + ".",
                   "Free it after the last use.", place, 0};
    }
    if (end.side == MemorySide::kDevice) {
      const std::string near = place_words(facts, place);
      return Story{name,
                   act + " of " + format_bytes(event.size_bytes) + " was given a " + name +
                       " that is not device memory" + (near.empty() ? "" : ": " + near) + ".",
                   "A pointer to host memory, or one that was moved beyond its allocation, is no " + name + " for it.",
                   place, 0};
    }
  }
  return std::nullopt;
}

class Judge {
 public:
  Judge(const Facts& facts, std::vector<Finding>& findings, std::vector<NotJudged>& not_judged)
      : facts_(facts), trace_(facts.trace), findings_(findings), not_judged_(not_judged) {}

  void run() {
    const auto is_copy = [](const Event& event) {
      return event.kind == EventKind::kCopy || event.kind == EventKind::kSet;
    };
    if (std::none_of(trace_.events.begin(), trace_.events.end(), is_copy)) return;
    DriverMemory memory(facts_);
    const std::uint32_t end = facts_.first_reported_fault();
    for (std::uint32_t index = 0; index < end; ++index) {
      const Event& event = trace_.events[index];
      memory.follow(event);
      if (event.kind != EventKind::kCopy && event.kind != EventKind::kSet) continue;
      if (event.kind == EventKind::kCopy && event.extra >= trace_.copies.size()) continue;
      if (event.has(kFailed))
        judge_refused(index, memory);
      else if (!event.has(kCaptured))
        judge_done(index, memory);
    }
    if (beyond_ != 0)
      not_judged_.push_back({rule_name::kBadCopy, format_count(beyond_) +
                                                      " more bad copies, from other places than the first " +
                                                      format_count(kMostLookedInto) + ", were not looked into"});
  }

 private:
  bool is_known(const Event& event) {  // the same call again
    const auto found = by_stack_.find({event.stack, event.kind});
    if (found != by_stack_.end()) ++findings_[found->second].count;
    if (found != by_stack_.end()) return true;
    if (by_stack_.size() < kMostLookedInto) return false;
    ++beyond_;
    return true;
  }

  void judge_done(std::uint32_t index, const DriverMemory& memory) {
    const Event& event = trace_.events[index];
    for (const End& end : ends_of(trace_, event)) {
      const auto beyond = memory.overrun(end);
      if (!beyond) continue;
      if (!is_known(event)) add(index, overrun_story(facts_, event, end, *beyond), {});
      return;
    }
  }

  void judge_refused(std::uint32_t index, const DriverMemory& memory) {
    const Event& event = trace_.events[index];
    const Refusal refusal = refusal_of(trace_, index);
    if (!refusal.blames_arguments() || is_known(event)) return;
    const std::vector<End> ends = ends_of(trace_, event);
    for (const End& end : ends) {
      if (const auto beyond = memory.overrun(end))
        return add(index, overrun_story(facts_, event, end, *beyond), refusal);
    }
    if (const auto story = refused_story(facts_, index, ends)) return add(index, *story, refusal);
    const std::string act = event.kind == EventKind::kSet ? "A fill" : "A copy";
    add(index,
        {"refused",
         act + " of " + format_bytes(event.size_bytes) + " was refused by the driver; the recording does not show why.",
         "Check the kind of copy (host to device, device to host), and the pitches of a copy of several rows.",
         {},
         0},
        refusal);
  }

  void add(std::uint32_t index, const Story& story, const Refusal& refusal) {
    const Event& event = trace_.events[index];
    const std::string library = asking_library(facts_, event.stack);
    Finding finding =
        finding_at(facts_, rule_name::kBadCopy, library.empty() ? Severity::kError : Severity::kWarning,
                   story.kind == "refused" ? Confidence::kLikely : Confidence::kProved, event.device, event.stack);
    finding.message = story.message;
    finding.memory = event.has(kFailed) ? "The driver refused it; nothing was moved."
                                        : "The driver did it: what lies behind was " +
                                              std::string(story.kind == "source" ? "read" : "overwritten") + ".";
    if (!library.empty()) finding.memory += " The call came from " + library + ".";
    finding.bytes = story.too_many_bytes != 0 ? story.too_many_bytes : event.size_bytes;
    if (story.place.allocation.value != 0)
      tell_memory(facts_, story.place.allocation, story.place.where == Where::kFreed, finding);
    finding.evidence.push_back({"copied_bytes", static_cast<std::int64_t>(event.size_bytes)});
    if (story.too_many_bytes != 0)
      finding.evidence.push_back({"too_many_bytes", static_cast<std::int64_t>(story.too_many_bytes)});
    if (event.kind == EventKind::kCopy) add_geometry(trace_.copies.at(CopyId(event.extra)), finding);
    if (!refusal.error.empty()) finding.evidence.push_back({"answer", refusal.function + ": " + refusal.error});
    add_try(finding, story.advice);
    finding.fingerprint = fingerprint(finding.rule, finding.location, story.kind);
    by_stack_.try_emplace({event.stack, event.kind}, findings_.size());
    findings_.push_back(std::move(finding));
  }

  static void add_geometry(const Copy& copy, Finding& finding) {
    if (copy.width_bytes == 0 || (copy.height <= 1 && copy.depth <= 1)) return;
    finding.evidence.push_back({"row_bytes", static_cast<std::int64_t>(copy.width_bytes)});
    finding.evidence.push_back(
        {"rows", static_cast<std::int64_t>(std::uint64_t{std::max(copy.height, 1u)} * std::max(copy.depth, 1u))});
    finding.evidence.push_back({"source_pitch_bytes", static_cast<std::int64_t>(copy.source_pitch_bytes)});
    finding.evidence.push_back({"destination_pitch_bytes", static_cast<std::int64_t>(copy.destination_pitch_bytes)});
  }

  const Facts& facts_;
  const Trace& trace_;
  std::vector<Finding>& findings_;
  std::vector<NotJudged>& not_judged_;
  std::map<std::pair<StackId, EventKind>, std::size_t> by_stack_;
  std::size_t beyond_ = 0;  // bad copies that were not looked into
};

}  // namespace

void judge_bad_copy(Case& subject, std::vector<Finding>& findings, std::vector<NotJudged>& not_judged) {
  Judge(subject.facts(), findings, not_judged).run();
}

}  // namespace faultline
