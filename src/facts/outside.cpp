#include "facts/outside.h"

#include <algorithm>
#include <charconv>
#include <map>

#include "facts/libraries.h"
#include "facts/mapped_ranges.h"

namespace faultline {
namespace {

std::string asker_of(const Trace& trace, const Event& birth, std::optional<StackLibraries>& libraries) {
  if (trace.heaps[birth.heap.index()].kind == HeapKind::kManaged) return "managed memory";
  if (!libraries) libraries.emplace(trace);
  std::string library = libraries->of(birth.stack);
  const bool pooled = trace.heaps[birth.heap.index()].kind == HeapKind::kStreamOrderedPool;
  if (library.empty()) return pooled ? "stream-ordered pools" : "other libraries";
  return library + (pooled ? " (stream-ordered pool)" : "");
}

constexpr std::size_t kMostParts = 24;

std::optional<std::uint64_t> stated(const Trace& trace, const std::string& name) {
  const auto found = trace.properties.find(name);
  if (found == trace.properties.end()) return std::nullopt;
  std::uint64_t value = 0;
  const auto [end, problem] = std::from_chars(found->second.data(), found->second.data() + found->second.size(), value);
  return problem == std::errc() ? std::optional(value) : std::nullopt;
}

}  // namespace

std::vector<OutsidePart> outside_parts(const Trace& trace, const Lifetimes& lifetimes, const HeapUses& uses,
                                       std::uint16_t device, std::uint32_t event) {
  std::map<std::string, OutsidePart> by_asker;
  std::optional<StackLibraries> libraries;
  const auto add = [&](const std::string& what, std::uint64_t bytes) {
    OutsidePart& part = by_asker[what];
    part.what = what;
    part.bytes += bytes;
    ++part.count;
  };
  const auto is_outside = [&](const Event& at) { return at.device == device && uses.of(at.heap) == HeapUse::kOutside; };
  for (const MappedRange& mapped : mapped_at(trace, event, is_outside))
    add(asker_of(trace, *mapped.by, libraries), mapped.range.size());
  lifetimes.for_each([&](AllocationId, const Lifetime& life, const Event& birth) {
    if (life.taken_at(event) && is_outside(birth)) add(asker_of(trace, birth, libraries), birth.size_bytes);
  });
  std::vector<OutsidePart> parts;
  for (auto& [what, part] : by_asker) parts.push_back(std::move(part));
  std::stable_sort(parts.begin(), parts.end(),
                   [](const OutsidePart& a, const OutsidePart& b) { return a.bytes > b.bytes; });
  if (parts.size() > kMostParts) {
    OutsidePart rest{std::to_string(parts.size() - kMostParts + 1) + " other libraries", 0, 0};
    for (std::size_t at = kMostParts - 1; at < parts.size(); ++at) {
      rest.bytes += parts[at].bytes;
      rest.count += parts[at].count;
    }
    parts.resize(kMostParts - 1);
    parts.push_back(std::move(rest));
  }
  return parts;
}

std::optional<Unasked> unasked_memory(const Trace& trace, const Device& device) {
  const std::string index = std::to_string(device.index);
  const auto at_start = stated(trace, "driver.free_at_start." + index);
  const auto later = stated(trace, "driver.unasked." + index);
  if (device.capacity_bytes == 0 || (!at_start && !later)) return std::nullopt;
  Unasked unasked;
  if (at_start && device.capacity_bytes > *at_start) unasked.before_start = device.capacity_bytes - *at_start;
  unasked.bytes = std::max(unasked.before_start, later.value_or(0));
  return unasked;
}

}  // namespace faultline
