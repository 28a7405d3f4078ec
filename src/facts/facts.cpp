#include "facts/facts.h"

namespace faultline {

Facts::Facts(const Trace& from, std::span<const std::uint64_t> held_bytes)
    : trace(from), lifetimes(from, held_bytes), stacks(from), steps(find_steps(from)), usage(measure_usage(from, lifetimes)) {
  for (const DeviceUsage& device : usage) {
    const auto last = static_cast<std::uint32_t>(trace.events.empty() ? 0 : trace.events.size() - 1);
    categories.emplace_back(trace, lifetimes, stacks, steps, device.failures.empty() ? last : device.failures.back().event);
  }
}

const UsageMoment& Facts::focus(std::size_t device_slot) const {
  const DeviceUsage& device = usage[device_slot];
  return device.failures.empty() ? device.peak_allocated : device.failures.back();
}

CategoryBytes Facts::live_by_category(std::size_t device_slot, std::uint32_t event) const {
  CategoryBytes bytes{};
  for (std::uint32_t number = 1; number <= trace.allocation_count; ++number) {
    const AllocationId id(number);
    const Lifetime& life = lifetimes.of(id);
    if (life.born == kNever || !life.alive_at(event)) continue;
    const Event& birth = lifetimes.birth(id);
    if (birth.device != usage[device_slot].device || trace.heaps[birth.heap.index()].kind == HeapKind::kDriver) continue;
    bytes[static_cast<std::size_t>(categories[device_slot].of(id))] += lifetimes.held_bytes(id);
  }
  return bytes;
}

}  // namespace faultline
