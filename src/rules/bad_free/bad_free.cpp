// api/bad-free: memory given back that cannot be: freed before, a pointer into the middle, the wrong function for it, or nobody's at all.
#include <map>

#include "base/units.h"
#include "rules/describe.h"
#include "rules/memory_words.h"
#include "rules/refused_call.h"
#include "rules/rule.h"

namespace faultline {
namespace {

constexpr std::size_t kMostLookedInto = 256;  // beyond that, calls of stacks that are known are only counted

std::string_view right_function(HeapKind kind) {
  switch (kind) {
    case HeapKind::kPinnedHost: return "cudaFreeHost (cuMemFreeHost)";
    case HeapKind::kRegisteredHost: return "cudaHostUnregister (cuMemHostUnregister)";
    case HeapKind::kImported: return "cudaIpcCloseMemHandle (cuIpcCloseMemHandle)";
    default: return "cudaFree (cuMemFree)";
  }
}

struct Story {
  std::string kind;     // for the fingerprint: "double", "interior", …
  std::string message;  // continues "free of 0x… refused: "
  std::string advice;
  Confidence confidence = Confidence::kProved;
};

Story story_of(const Facts& facts, const Event& event, const AddressPlace& place, const std::string& function) {
  const std::string called = function.empty() ? "The call" : function;
  if (event.address == 0)
    return {"null", called + " was given a null pointer.",
            "cudaFree takes a null pointer, the driver's own function does not.", Confidence::kProved};
  if (place.where == Where::kFreed) {
    const bool at_start = place.distance_bytes == 0;
    return {at_start ? "double" : "interior",
            (at_start ? "Memory is freed a second time: "
                      : "A pointer into memory that had already been freed is freed: ") +
                memory_words(facts, place.allocation) + ".",
            "Free it once: set the pointer to null where it is freed first, or let one owner do it.",
            Confidence::kProved};
  }
  if (place.where == Where::kInside) {
    const Event& birth = facts.lifetimes.birth(place.allocation);
    const HeapKind kind = facts.trace.heaps[birth.heap.index()].kind;
    if (kind == HeapKind::kTorchCaching) {
      return {"framework", called + " was given PyTorch's memory: " + place_words(facts, place) + ".",
              "PyTorch hands this memory out and takes it back by itself: let go of the tensor instead.",
              Confidence::kProved};
    }
    if (place.distance_bytes != 0) {
      return {"interior",
              "A pointer into the middle of an allocation is freed: byte " + format_count(place.distance_bytes) +
                  " of " + memory_words(facts, place.allocation) + ".",
              "Free the pointer that the allocation returned, not one that was moved on from it.", Confidence::kProved};
    }
    return {"function", called + " is not the function for this memory: " + memory_words(facts, place.allocation) + ".",
            "Give it back with " + std::string(right_function(kind)) + ".", Confidence::kProved};
  }
  const bool whole = facts.trace.can(kCompleteFromStart);
  return {"unknown",
          called + " was given a pointer that " +
              (whole ? "no allocation of this process returned" : "no allocation in the recording returned") + ".",
          "A pointer of malloc, of the stack or of another process cannot be given to it; nor one that was never set.",
          whole ? Confidence::kProved : Confidence::kLikely};
}

}  // namespace

void judge_bad_free(Case& subject, std::vector<Finding>& findings, std::vector<NotJudged>& not_judged) {
  const Facts& facts = subject.facts();
  const Trace& trace = subject.trace();
  const std::uint32_t end = facts.first_reported_fault();
  std::map<std::pair<FrameId, std::string>, std::size_t> known;  // by line and kind
  std::map<StackId, std::size_t> by_stack;
  std::size_t looked_into = 0, beyond = 0;
  for (std::uint32_t index = 0; index < end; ++index) {
    const Event& event = trace.events[index];
    if (!event.has(kFailed) || (event.kind != EventKind::kFree && event.kind != EventKind::kHostUnpin)) continue;
    if (event.allocation.value != 0) continue;  // the pointer was right: something else was in the way
    const Refusal refusal = refusal_of(trace, index);
    if (!refusal.blames_arguments()) continue;
    if (looked_into++ >= kMostLookedInto) {
      if (const auto same = by_stack.find(event.stack); same != by_stack.end())
        ++findings[same->second].count;
      else
        ++beyond;
      continue;
    }
    const AddressMap map(trace, facts.lifetimes, facts.uses, index);
    const AddressPlace place = event.address == 0 ? AddressPlace{} : map.place(event.address);
    const Story story = story_of(facts, event, place, refusal.function);
    StackId user = facts.stacks.user(event.stack);
    const auto [at, fresh] =
        known.try_emplace({trace.stacks.frame_id(user.value != 0 ? user : event.stack), story.kind}, findings.size());
    by_stack.try_emplace(event.stack, at->second);
    if (!fresh) {
      ++findings[at->second].count;
      continue;
    }
    const std::string library = asking_library(facts, event.stack);
    Finding finding = finding_at(facts, rule_name::kBadFree, library.empty() ? Severity::kError : Severity::kWarning,
                                 story.confidence, event.device, event.stack);
    finding.message = story.message;
    if (!library.empty()) finding.memory = "The call came from " + library + ".";
    if (place.where == Where::kInside || place.where == Where::kFreed) {
      tell_memory(facts, place.allocation, place.where == Where::kFreed, finding);
      finding.bytes = facts.lifetimes.birth(place.allocation).size_bytes;
    }
    if (place.where == Where::kInside && place.distance_bytes != 0)
      finding.evidence.push_back({"offset_bytes", static_cast<std::int64_t>(place.distance_bytes)});
    finding.evidence.push_back({"pointer", hex(event.address)});
    if (!refusal.error.empty()) finding.evidence.push_back({"answer", refusal.function + ": " + refusal.error});
    add_try(finding, story.advice);
    finding.fingerprint = fingerprint(finding.rule, finding.location, story.kind);
    findings.push_back(std::move(finding));
  }
  if (beyond != 0)
    not_judged.push_back({rule_name::kBadFree, format_count(beyond) + " more refused calls, after the first " +
                                                   format_count(kMostLookedInto) + ", were not looked into"});
}

}  // namespace faultline
