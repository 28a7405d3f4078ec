#include "facts/lifetimes.h"

namespace faultline {
namespace {

constexpr std::uint64_t kLeastBlockBytes = 512;

}  // namespace

Lifetimes::Lifetimes(const Trace& trace, std::span<const std::uint64_t> held_bytes)
    : trace_(&trace), lifetimes_(trace.allocation_count + std::size_t{1}), held_bytes_(held_bytes) {
  for (std::size_t index = 0; index < trace.events.size(); ++index) {
    const Event& event = trace.events[index];
    if (event.allocation.value == 0 || event.has(kFailed)) continue;
    Lifetime& life = lifetimes_[event.allocation.index()];
    const auto at = static_cast<std::uint32_t>(index);
    if (event.kind == EventKind::kAlloc || event.kind == EventKind::kHostPin) {
      life.born = at;
    } else if (event.kind == EventKind::kFree || event.kind == EventKind::kHostUnpin) {
      if (event.phase() != FreePhase::kCompleted && life.released == kNever) life.released = at;
      if (event.phase() != FreePhase::kRequested) {
        if (life.released == kNever) life.released = at;
        life.returned = at;
      }
    }
  }
}

std::uint64_t Lifetimes::held_bytes(AllocationId id) const {
  if (id.index() < held_bytes_.size() && held_bytes_[id.index()] != 0) return held_bytes_[id.index()];
  const Event& event = birth(id);
  if (trace_->heaps[event.heap.index()].kind != HeapKind::kTorchCaching) return event.size_bytes;
  return (event.size_bytes + kLeastBlockBytes - 1) / kLeastBlockBytes * kLeastBlockBytes;
}

}  // namespace faultline
