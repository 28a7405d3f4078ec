#include "sources/bfc_log/level3.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "base/hash.h"

namespace faultline {
namespace {

constexpr std::size_t kNeverNeeded = std::numeric_limits<std::size_t>::max();

// For each allocation the event that hands out its address again.
std::vector<std::size_t> when_needed(const Trace& trace) {
  std::vector<std::size_t> needed(trace.allocation_count + std::size_t{1}, kNeverNeeded);
  struct Taken {
    std::uint64_t end = 0;
    AllocationId id;
  };
  std::map<std::pair<std::uint16_t, std::uint64_t>, Taken> taken;  // by heap and address: the last that lay there
  for (std::size_t at = 0; at < trace.events.size(); ++at) {
    const Event& event = trace.events[at];
    if (event.kind != EventKind::kAlloc || trace.heaps[event.heap.index()].kind != HeapKind::kBfc) continue;
    const std::uint64_t end = event.address + std::max<std::uint64_t>(event.size_bytes, 1);
    auto next = taken.lower_bound({event.heap.value, event.address});
    if (next != taken.begin()) {
      const auto before = std::prev(next);
      if (before->first.first == event.heap.value && before->second.end > event.address) next = before;
    }
    while (next != taken.end() && next->first.first == event.heap.value && next->first.second < end) {
      needed[next->second.id.index()] = at;
      next = taken.erase(next);
    }
    taken[{event.heap.value, event.address}] = {end, event.allocation};
  }
  return needed;
}

}  // namespace

void settle_nameless_frees(Trace& trace) {
  const std::vector<std::size_t> needed = when_needed(trace);
  using BySize = std::pair<std::uint16_t, std::uint64_t>;                    // heap, size
  std::map<BySize, std::set<std::pair<std::size_t, std::uint32_t>>> living;  // when needed, allocation
  std::vector<std::uint64_t> address_of(trace.allocation_count + std::size_t{1});
  std::uint64_t guessed = 0, unknown = 0;
  for (Event& event : trace.events) {
    if (trace.heaps[event.heap.index()].kind != HeapKind::kBfc) continue;
    const BySize size{event.heap.value, event.size_bytes};
    if (event.kind == EventKind::kAlloc) {
      living[size].emplace(needed[event.allocation.index()], event.allocation.value);
      address_of[event.allocation.index()] = event.address;
    }
    if (event.kind != EventKind::kFree || event.allocation.value != 0) continue;
    const auto candidates = living.find(size);
    if (candidates == living.end() || candidates->second.empty()) {
      ++unknown;
      continue;
    }
    const auto [when, id] = *candidates->second.begin();
    guessed += when == kNeverNeeded && candidates->second.size() > 1 ? 1 : 0;
    candidates->second.erase(candidates->second.begin());
    event.allocation = AllocationId(id);
    event.address = address_of[id];
    event.set(kAddressKnown);
  }
  trace.count("frees that the log names by size alone, of several that it may have been (level 4 names them)", guessed);
  trace.count("frees of memory that was never seen allocated", unknown);
}

}  // namespace faultline
