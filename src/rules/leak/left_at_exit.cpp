#include "rules/leak/left_at_exit.h"

#include <algorithm>

#include "base/units.h"
#include "facts/libraries.h"
#include "facts/mapped_ranges.h"
#include "rules/describe.h"
#include "sources/rule_names.h"
#include "trace/context_end.h"
#include "trace/framework.h"

namespace faultline {
namespace {

constexpr std::uint64_t kLeastRounds = 3;
constexpr std::size_t kMostCallers = 256;  // of one stack that are asked whether they keep memory

bool nearly_all(std::uint64_t kept, std::uint64_t made) { return kept * 4 >= made * 3; }

// Memory of every kind that is taken to be given back: also pinned memory of the computer, and memory that is put behind addresses (cuMemMap).
bool is_from_driver(const Trace& trace, const Event& event) {
  if (event.has(kFailed) || event.heap.index() >= trace.heaps.size()) return false;
  const HeapKind kind = trace.heaps[event.heap.index()].kind;
  if (event.kind == EventKind::kHostPin) return kind == HeapKind::kPinnedHost;
  if (event.kind == EventKind::kMap) return kind == HeapKind::kDriver;
  return event.kind == EventKind::kAlloc &&
         (kind == HeapKind::kDriver || kind == HeapKind::kStreamOrderedPool || kind == HeapKind::kManaged);
}

// Setting up allocates and copies in; work launches kernels, brings results back, or gives memory back.
bool is_work(const Trace& trace, const Event& event) {
  if (event.has(kFailed)) return false;
  if (event.kind == EventKind::kLaunch || (event.kind == EventKind::kFree && event.extra != kWithItsContext))
    return true;
  return event.kind == EventKind::kCopy && event.extra < trace.copies.size() &&
         trace.copies.at(CopyId(event.extra)).destination_side == MemorySide::kHost;
}

// One line of the program, from all the ways that lead to it.
struct Line {
  StackId stack;
  KeptMemory::Stack sum;
  bool grows = false;
};

Finding growing(const Facts& facts, const Line& line) {
  const KeptMemory::Stack& sum = line.sum;
  Finding finding =
      finding_at(facts, rule_name::kLeak, Severity::kWarning, Confidence::kLikely, sum.device, line.stack);
  finding.bytes = sum.kept_bytes;
  finding.message = format_count(sum.kept) + " of the " + format_count(sum.made) +
                    " allocations made at this line were never freed, " + format_bytes(sum.kept_bytes) +
                    " in all; the program came back to it " + format_count(sum.rounds) +
                    " times, with other work between.";
  finding.evidence = {{"kept_allocations", static_cast<std::int64_t>(sum.kept)},
                      {"made_allocations", static_cast<std::int64_t>(sum.made)},
                      {"kept_bytes", static_cast<std::int64_t>(sum.kept_bytes)},
                      {"rounds", static_cast<std::int64_t>(sum.rounds)}};
  finding.tries.push_back({"Free it when its round is over, or allocate it once before the loop and use it again.",
                           std::nullopt, sum.kept_bytes});
  finding.fingerprint = fingerprint(finding.rule, finding.location, "exit");
  return finding;
}

Finding left_over(const Facts& facts, const std::vector<Line>& lines) {
  Finding finding =
      finding_at(facts, rule_name::kLeak, Severity::kNote, Confidence::kProved, lines.back().sum.device, {});
  std::uint64_t count = 0, with_context = 0;
  for (const Line& line : lines) {
    with_context += line.sum.with_context;
    finding.bytes += line.sum.kept_bytes;
    finding.holders.push_back({line.sum.kept_bytes, line.sum.kept, "other", location_of(facts, line.stack), {}});
    count += line.sum.kept;
  }
  std::stable_sort(finding.holders.begin(), finding.holders.end(),
                   [](const Holder& a, const Holder& b) { return a.bytes > b.bytes; });
  finding.location = finding.holders.front().location;
  finding.message =
      format_count(count) + (count == 1 ? " allocation" : " allocations") + ", " + format_bytes(finding.bytes) + ", " +
      (count == 1 ? "was" : "were") +
      (with_context == 0       ? " still held when the program ended; the driver takes them back then"
       : with_context == count ? count == 1 ? " never freed; the end of its context took it back"
                                            : " never freed; the end of their context took them back"
                               : " never freed; the driver took them back when their context or the program ended") +
      ", so it matters only if this code is to run more than once in a process.";
  finding.evidence = {{"kept_allocations", static_cast<std::int64_t>(count)},
                      {"kept_bytes", static_cast<std::int64_t>(finding.bytes)}};
  finding.fingerprint = fingerprint(finding.rule, finding.location, "exit");
  return finding;
}

}  // namespace

bool keeps_for_itself(std::string_view library) {
  return library == words_of(Framework::kPyTorch) || library == "XLA" || library == words_of(Framework::kTensorFlow) ||
         library == "CuPy" || library == "RMM" || library == "Numba" || library == "ONNX Runtime" ||
         library == "TensorRT";
}

KeptMemory::KeptMemory(const Facts& facts) : facts_(facts) {
  const Trace& trace = facts.trace;
  const auto has_framework = [&](const Device& device) { return facts.uses.has_framework(device.index); };
  if (!trace.devices.empty() && std::all_of(trace.devices.begin(), trace.devices.end(), has_framework)) return;
  std::map<StackId, bool> own;                   // the program's own request, by stack
  std::map<StackId, std::uint64_t> seen;         // work done when the stack was last met
  std::map<const Event*, std::uint64_t> mapped;  // bytes that are mapped at the end, by what mapped them
  if (!trace.events.empty()) {
    for (const MappedRange& range :
         mapped_at(trace, static_cast<std::uint32_t>(trace.events.size() - 1), [](const Event&) { return true; }))
      mapped[range.by] += range.range.size();
  }
  std::uint64_t work = 0;
  std::uint32_t last_made = 0;
  for (std::uint32_t index = 0; index < trace.events.size(); ++index) {
    if (trace.events[index].kind == EventKind::kAlloc) last_made = index;
  }
  // Also what nobody freed before the last context ended (cudaDeviceReset at the end of a program); a program that goes on in another context has ended the first one on purpose.
  const auto is_kept = [&](std::uint32_t released) {
    return released == kNever || (trace.events[released].extra == kWithItsContext && released > last_made);
  };
  for (std::uint32_t index = 0; index < trace.events.size(); ++index) {
    const Event& event = trace.events[index];
    work += is_work(trace, event);
    if (!is_from_driver(trace, event) || facts.uses.has_framework(event.device)) continue;
    const auto [known, fresh] = own.try_emplace(event.stack, false);
    if (fresh) {
      const std::string library = library_of(trace, event.stack);
      known->second = library == "the program" || (library.empty() && event.stack.value != 0);
    }
    if (!known->second) continue;
    Stack& stack = stacks_[event.stack];
    if (stack.made++ == 0) {
      stack.first = index;
      stack.device = event.device;
    }
    const auto [last, first_time] = seen.try_emplace(event.stack, work);
    if (first_time || work > last->second) ++stack.rounds;
    last->second = work;
    const bool is_map = event.kind == EventKind::kMap;
    const auto still_mapped = is_map ? mapped.find(&event) : mapped.end();
    const std::uint32_t released = is_map ? kNever : facts.lifetimes.of(event.allocation).released;
    if (is_map ? still_mapped == mapped.end() : !is_kept(released)) continue;
    ++stack.kept;
    stack.kept_bytes += is_map ? still_mapped->second : event.size_bytes;
    stack.with_context += released != kNever;
    stack.last_kept = index;
  }
  for (const auto& [id, stack] : stacks_) {
    std::set<FrameId> counted;
    std::size_t looked_at = 0;
    for (StackId at = facts.stacks.user(id); at.value != 0 && looked_at < kMostCallers;
         at = facts.stacks.user(trace.stacks.parent(at)), ++looked_at) {
      if (!counted.insert(trace.stacks.frame_id(at)).second) continue;
      Share& line = lines_[trace.stacks.frame_id(at)];
      line.made += stack.made;
      line.kept += stack.kept;
    }
  }
}

bool KeptMemory::grows(const Stack& stack) const {
  const auto end = static_cast<std::uint32_t>(facts_.trace.events.size());
  return stack.rounds >= kLeastRounds && stack.kept >= kLeastRounds && nearly_all(stack.kept, stack.made) &&
         stack.last_kept >= stack.first + (end - stack.first) / 4 * 3;
}

bool KeptMemory::grows(StackId stack) const {
  const auto found = stacks_.find(stack);
  return found != stacks_.end() && grows(found->second);
}

StackId KeptMemory::line_of(StackId stack) const {
  const Trace& trace = facts_.trace;
  std::size_t looked_at = 0;
  for (StackId at = facts_.stacks.user(stack); at.value != 0 && looked_at < kMostCallers;
       at = facts_.stacks.user(trace.stacks.parent(at)), ++looked_at) {
    const auto found = lines_.find(trace.stacks.frame_id(at));
    if (found != lines_.end() && nearly_all(found->second.kept, found->second.made)) return at;
  }
  const StackId user = facts_.stacks.user(stack);
  return user.value != 0 ? user : stack;
}

void judge_left_at_exit(const Facts& facts, const Ending& ending, const KeptMemory& kept, const std::set<FrameId>& told,
                        std::vector<Finding>& findings) {
  const Trace& trace = facts.trace;
  if (!ending.exited || !trace.can(kCompleteFromStart)) return;
  if (!facts.faults.empty()) return;  // it could not give anything back any more
  std::map<FrameId, Line> lines;
  for (const auto& [id, stack] : kept.stacks()) {
    if (stack.kept == 0) continue;
    const StackId at = kept.line_of(id);
    if (told.contains(trace.stacks.frame_id(at))) continue;
    Line& line = lines[trace.stacks.frame_id(at)];
    line.stack = at;
    line.grows = line.grows || kept.grows(stack);
    line.sum.device = stack.device;
    line.sum.made += stack.made;
    line.sum.kept += stack.kept;
    line.sum.kept_bytes += stack.kept_bytes;
    line.sum.with_context += stack.with_context;
    line.sum.rounds = std::max(line.sum.rounds, stack.rounds);
  }
  std::vector<Line> rest;
  for (const auto& [frame, line] : lines) {
    if (line.grows)
      findings.push_back(growing(facts, line));
    else
      rest.push_back(line);
  }
  if (!rest.empty()) findings.push_back(left_over(facts, rest));
}

}  // namespace faultline
