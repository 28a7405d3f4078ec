#include "facts/facts.h"

namespace faultline {

namespace {

// The event at which a device's live memory is looked at: its last failure, else the end. A dry run on a GPU that grows goes on past its failure.
std::uint32_t focus_event(const Trace& trace, std::uint16_t device) {
  for (std::size_t index = trace.events.size(); index-- > 0;) {
    const Event& event = trace.events[index];
    if (event.kind == EventKind::kAllocFailed && event.device == device) {
      if (trace.source_kind == "dry-run" && is_served_after_all(trace, static_cast<std::uint32_t>(index))) continue;
      return static_cast<std::uint32_t>(index);
    }
  }
  return static_cast<std::uint32_t>(trace.events.empty() ? 0 : trace.events.size() - 1);
}

}  // namespace

Facts::Facts(const Trace& from, std::span<const std::uint64_t> held_bytes, const std::function<void()>& await_sizes)
    : trace(from), uses(from), lifetimes(from, held_bytes), stacks(from), steps(find_steps(from)) {
  for (std::uint32_t index = 0; index < trace.events.size(); ++index) {
    // a message has none of its own
    if (trace.events[index].kind == EventKind::kFault && trace.events[index].extra != 0) faults.push_back(index);
    if (trace.events[index].kind == EventKind::kViolation) violations.push_back(index);
  }
  for (const Device& device : trace.devices)
    categories.emplace_back(trace, lifetimes, stacks, steps, focus_event(trace, device.index));
  if (await_sizes) await_sizes();
  usage = measure_usage(trace, lifetimes, uses);
}

std::uint32_t Facts::first_reported_fault() const {
  for (const std::uint32_t index : faults) {
    if (trace.faults.at(FaultId(trace.events[index].extra)).reported_by.value != 0) return index;
  }
  return static_cast<std::uint32_t>(trace.events.size());
}

const UsageMoment& Facts::focus(std::size_t device_slot) const {
  const DeviceUsage& device = usage[device_slot];
  return device.failures.empty() ? device.peak_allocated : device.failures.back();
}

CategoryBytes Facts::live_by_category(std::size_t device_slot, std::uint32_t event) const {
  CategoryBytes bytes{};
  lifetimes.for_each([&](AllocationId id, const Lifetime& life, const Event& birth) {
    if (!life.alive_at(event) || birth.device != usage[device_slot].device || !uses.is_program(birth.heap)) return;
    bytes[static_cast<std::size_t>(categories[device_slot].of(id))] += lifetimes.held_bytes(id);
  });
  return bytes;
}

}  // namespace faultline
