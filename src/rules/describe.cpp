#include "rules/describe.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <tuple>
#include <utility>

#include "base/hash.h"
#include "base/units.h"
#include "facts/libraries.h"
#include "rules/calling_frame.h"
#include "rules/line_words.h"

namespace faultline {
namespace {

constexpr std::size_t kMostFrames = 1024;

}  // namespace

Location location_of_frame(const Trace& trace, StackId frame) {
  if (frame.value == 0) return {};
  const Frame& at = trace.stacks.frame(frame);
  Location location;
  location.file = trace.strings.at(at.file);
  location.function = trace.strings.at(at.function);
  location.line = at.line;
  // An allocator's own log names operations, and no file of any.
  const auto is_pool = [](const Heap& heap) { return heap.kind == HeapKind::kBfc; };
  if (location.file.empty() && std::any_of(trace.heaps.begin(), trace.heaps.end(), is_pool))
    location.op = std::exchange(location.function, {});
  return location;
}

// The frame that stands for a stack.
static StackId telling_frame(const Facts& facts, StackId stack) {
  StackId frame = facts.stacks.line(stack);
  // Compiled code without lines: whoever called CUDA's runtime, rather than the runtime.
  std::size_t looked_at = 0;
  for (StackId at = stack; at.value != 0 && frame.value == 0 && looked_at < kMostFrames;
       at = facts.trace.stacks.parent(at), ++looked_at) {
    if (!library_of_file(facts.trace.strings.at(facts.trace.stacks.frame(at).file)).empty()) frame = at;
  }
  return frame.value != 0 ? frame : stack;
}

Location location_of(const Facts& facts, StackId stack) {
  return location_of_frame(facts.trace, telling_frame(facts, stack));
}

std::vector<Location> callers_of(const Facts& facts, StackId stack, std::size_t limit) {
  std::vector<Location> callers;
  StackId user = facts.stacks.user(stack);
  while (user.value != 0 && callers.size() < limit) {
    user = facts.stacks.user(facts.trace.stacks.parent(user));
    if (user.value != 0) callers.push_back(location_of_frame(facts.trace, user));
  }
  return callers;
}

std::string short_place(const Location& location) {
  if (location.file.empty()) return location.op.empty() ? "an unknown line" : location.op;
  const std::string name = location.file.substr(location.file.find_last_of('/') + 1);
  return location.line != 0 ? name + line_behind(name, location.line) : name;
}

std::string library_detail(const Facts& facts, StackId stack) {
  const StackId inner = facts.stacks.innermost_python(stack);
  if (inner.value == 0 || inner == facts.stacks.user(stack)) return {};
  const Location location = location_of_frame(facts.trace, inner);
  return "in " + location.function + ", " + short_place(location);
}

void add_inside(const Facts& facts, StackId stack, Finding& finding) {
  const StackId inner = calling_frame(facts.trace, stack);
  if (inner.value == 0 || facts.stacks.user(stack).value == 0 || inner == facts.stacks.user(stack) ||
      facts.stacks.has(stack, kInBackward))
    return;
  const Location location = location_of_frame(facts.trace, inner);
  if (is_library_file(location.file)) finding.related.push_back({std::string(Related::kInside), {}, 0, location});
}

Whereabouts whereabouts(const Facts& facts, std::size_t device_slot, std::uint32_t event_index) {
  const Trace& trace = facts.trace;
  const Event& event = trace.events[event_index];
  Whereabouts result;
  if (event.stack.value != 0) {
    result.location = location_of(facts, event.stack);
    result.callers = callers_of(facts, event.stack);
    result.in_backward = facts.stacks.has(event.stack, kInBackward);
    return result;
  }
  // The engine's threads have no Python frames. The line that called backward() stands on the last event that has one.
  result.in_backward = facts.categories[device_slot].in_backward(event);
  for (std::uint32_t index = event_index; index-- > 0;) {
    const Event& before = trace.events[index];
    if (before.stack.value == 0 || before.device != event.device || facts.stacks.user(before.stack).value == 0)
      continue;
    if (result.in_backward && !facts.stacks.has(before.stack, kInBackward)) {
      // A recomputed forward, or a hook, may have a stack of its own within backward: look a little further for the call itself.
      if (event_index - index < 4096) continue;
      result.in_backward = false;
      index = event_index;
      continue;
    }
    result.location = location_of(facts, before.stack);
    result.callers = callers_of(facts, before.stack);
    result.is_guess = !result.in_backward;
    return result;
  }
  return result;
}

namespace {

// What one line holds of one kind, by the library's function that took it: one member's would not be so for the others.
struct HeldByLine {
  struct Part {
    std::uint64_t bytes = 0, count = 0;
    StackId stack;
  };
  std::uint64_t bytes = 0, count = 0;
  std::uint64_t cached_bytes = 0;  // of them, in a cache of keys and values
  StackId stack;                   // of any
  std::map<FrameId, Part> parts;   // by the innermost line
};
// the line, not the path to it: one line called from two places is one holder
using LineKey = std::tuple<FrameId, Category, bool>;

// What a dry run saw join, call after call, what an earlier call had made.
std::vector<bool> kept_as_cache(const Trace& trace) {
  std::vector<bool> kept(trace.allocation_count + std::size_t{1});
  for (const Event& event : trace.events) {
    if (event.kind != EventKind::kTensorNote || event.allocation.value == 0 || event.extra == 0) continue;
    if (trace.strings.at(trace.tensors.at(TensorId(event.extra)).op) == "cache") kept[event.allocation.index()] = true;
  }
  return kept;
}

std::string detail_words(const Facts& facts, const HeldByLine& held) {
  const auto most = std::max_element(held.parts.begin(), held.parts.end(),
                                     [](const auto& a, const auto& b) { return a.second.bytes < b.second.bytes; });
  if (most == held.parts.end()) return {};
  const std::string detail = library_detail(facts, most->second.stack);
  if (held.parts.size() == 1) return detail;
  if (most->second.bytes <= held.bytes / 2) return {};
  const std::string whose = detail.empty() ? "by the line itself" : detail;
  if (most->second.count <= held.count / 2) return fmt::format("{} of it {}", format_bytes(most->second.bytes), whose);
  return fmt::format("most {} ({} of {})", whose, format_count(most->second.count), format_count(held.count));
}

}  // namespace

std::vector<Holder> holders_at(const Facts& facts, std::size_t device_slot, std::uint32_t event, std::size_t limit) {
  return holder_lists_at(facts, device_slot, event, limit, 0).most;
}

HolderLists holder_lists_at(const Facts& facts, std::size_t device_slot, std::uint32_t event, std::size_t limit,
                            std::size_t more_limit) {
  const Trace& trace = facts.trace;
  HashMap<std::uint32_t, FrameId> line_of;
  const auto key_of = [&](AllocationId id, const Event& birth) {
    const auto [at, is_new] = line_of.try_emplace(birth.stack.value);
    if (is_new) at->second = trace.stacks.frame_id(telling_frame(facts, birth.stack));
    const FrameId line = at->second;
    return LineKey{line, facts.categories[device_slot].of(id), facts.categories[device_slot].in_backward(birth)};
  };
  const auto for_each_held = [&](auto&& take) {
    facts.lifetimes.for_each([&](AllocationId id, const Lifetime& life, const Event& birth) {
      if (life.alive_at(event) && birth.device == facts.usage[device_slot].device && facts.uses.is_program(birth.heap))
        take(id, birth, facts.lifetimes.held_bytes(id));
    });
  };
  std::map<LineKey, HeldByLine> sums;
  const std::vector<bool> in_cache = kept_as_cache(trace);
  for_each_held([&](AllocationId id, const Event& birth, std::uint64_t bytes) {
    HeldByLine& sum = sums[key_of(id, birth)];
    sum.bytes += bytes;
    if (in_cache[id.index()]) sum.cached_bytes += bytes;
    ++sum.count;
    sum.stack = birth.stack;
  });
  // Lines are described once it is known which of them are told.
  using Line = std::pair<LineKey, HeldByLine>;
  std::vector<Line> lines(sums.begin(), sums.end());
  std::sort(lines.begin(), lines.end(), [](const Line& a, const Line& b) { return a.second.bytes > b.second.bytes; });
  const auto told_of = [&](std::size_t most) { return lines.size() > most ? most - 1 : lines.size(); };
  std::map<LineKey, HeldByLine*> wanted;
  for (std::size_t at = 0; at < told_of(std::max(limit, more_limit)); ++at) wanted[lines[at].first] = &lines[at].second;
  for_each_held([&](AllocationId id, const Event& birth, std::uint64_t bytes) {
    const auto line = wanted.find(key_of(id, birth));
    if (line == wanted.end()) return;
    HeldByLine::Part& part = line->second->parts[trace.stacks.frame_id(facts.stacks.innermost_python(birth.stack))];
    part.bytes += bytes;
    ++part.count;
    part.stack = birth.stack;
  });
  const auto list = [&](std::size_t most) {
    const std::size_t told = told_of(most);
    std::vector<Holder> holders;
    for (std::size_t at = 0; at < told; ++at) {
      const auto& [key, sum] = lines[at];
      Holder holder;
      holder.bytes = sum.bytes;
      holder.count = sum.count;
      holder.category = 2 * sum.cached_bytes > sum.bytes ? "KV cache" : name_of(std::get<1>(key));
      holder.location = location_of(facts, sum.stack);
      holder.detail = detail_words(facts, sum);
      if (sum.stack.value == 0)
        holder.detail = std::get<2>(key) ? "made in backward, where Python has no line" : "recorded without a stack";
      holders.push_back(std::move(holder));
    }
    if (told < lines.size()) {
      Holder rest;
      rest.category = kUnlistedLines;
      for (std::size_t at = told; at < lines.size(); ++at) {
        rest.bytes += lines[at].second.bytes;
        rest.count += lines[at].second.count;
      }
      rest.detail = std::to_string(lines.size() - told) + " other lines";
      holders.push_back(std::move(rest));
    }
    return holders;
  };
  return {list(limit), more_limit > limit && lines.size() > limit ? list(more_limit) : std::vector<Holder>()};
}

Finding finding_at(const Facts& facts, std::string_view rule, Severity severity, Confidence confidence,
                   std::uint16_t device, StackId stack) {
  Finding finding;
  finding.rule = rule;
  finding.severity = severity;
  finding.confidence = confidence;
  finding.device = device;
  finding.location = location_of(facts, stack);
  finding.call_path = callers_of(facts, stack);
  return finding;
}

void tell_memory(const Facts& facts, AllocationId allocation, bool was_freed, Finding& finding) {
  finding.allocated_at = location_of(facts, facts.lifetimes.birth(allocation).stack);
  const std::uint32_t released = facts.lifetimes.of(allocation).released;
  if (was_freed && released != kNever) finding.freed_at = location_of(facts, facts.trace.events[released].stack);
}

std::string fingerprint(std::string_view rule, const Location& location, std::string_view extra) {
  std::uint64_t hash = 0xcbf29ce484222325ull;
  const auto add = [&](std::string_view text) {
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
    hash = (hash ^ 0xff) * 0x100000001b3ull;
  };
  add(rule);
  add(location.file);
  add(std::to_string(location.line));
  add(location.function);
  add(extra);
  char text[20];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
  return text;
}

}  // namespace faultline
