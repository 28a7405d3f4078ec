#include "sources/torch_snapshot/overlaps.h"

#include <iterator>
#include <map>
#include <utility>

namespace faultline::torch_snapshot {

std::uint64_t overlapping_blocks(const Trace& trace) {
  std::map<std::pair<std::uint16_t, std::uint64_t>, std::uint64_t> live;  // by device and address: where it ends
  std::uint64_t overlapping = 0;
  for (const Event& event : trace.events) {
    if ((event.kind != EventKind::kAlloc && event.kind != EventKind::kFree) || event.allocation.value == 0 ||
        trace.heaps[event.heap.index()].kind != HeapKind::kTorchCaching)
      continue;
    const std::pair key{event.device, event.address};
    if (event.kind == EventKind::kFree) {
      if (event.phase() != FreePhase::kRequested) live.erase(key);
      continue;
    }
    const std::uint64_t end = event.address + event.size_bytes;
    const auto next = live.lower_bound(key);
    const auto before = next == live.begin() ? live.end() : std::prev(next);
    const bool is_over =
        (next != live.end() && next->first.first == event.device && next->first.second < end) ||
        (before != live.end() && before->first.first == event.device && before->second > event.address);
    overlapping += is_over ? 1 : 0;
    live[key] = end;
  }
  return overlapping;
}

}  // namespace faultline::torch_snapshot
