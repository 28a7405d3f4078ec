#include "facts/usage.h"

#include <algorithm>

namespace faultline {
namespace {

// The curve keeps the highest moment of each stretch of events, so that a short peak is never lost between samples.
void add_to_curve(DeviceUsage& usage, const UsageMoment& now, std::uint32_t stretch) {
  if (usage.curve.empty() || now.event / stretch != usage.curve.back().event / stretch) {
    usage.curve.push_back(now);
  } else if (now.allocated > usage.curve.back().allocated) {
    usage.curve.back() = now;
  }
}

// Without a framework what is allocated is what is reserved: there is no cache between.
void add(UsageMoment& moment, HeapUse use, std::uint64_t bytes, bool has_framework) {
  if (use == HeapUse::kOutside) moment.outside += bytes;
  if (use == HeapUse::kProgram) moment.allocated += bytes;
  if (use == HeapUse::kSegments || (use == HeapUse::kProgram && !has_framework)) moment.reserved += bytes;
}

void take(UsageMoment& moment, HeapUse use, std::uint64_t bytes, bool has_framework) {
  if (use == HeapUse::kOutside) moment.outside -= std::min(moment.outside, bytes);
  if (use == HeapUse::kProgram) moment.allocated -= std::min(moment.allocated, bytes);
  if (use == HeapUse::kSegments || (use == HeapUse::kProgram && !has_framework))
    moment.reserved -= std::min(moment.reserved, bytes);
}

}  // namespace

bool is_served_after_all(const Trace& trace, std::uint32_t failure) {
  constexpr std::uint64_t kRounding = 512;
  const Event& failed = trace.events[failure];
  for (std::size_t at = std::size_t{failure} + 1; at < trace.events.size(); ++at) {
    const Event& event = trace.events[at];
    if (event.device != failed.device || event.heap != failed.heap) continue;
    if (event.kind == EventKind::kAllocFailed) return false;
    if (event.kind == EventKind::kAlloc)
      return (event.size_bytes + kRounding - 1) / kRounding == (failed.size_bytes + kRounding - 1) / kRounding;
  }
  return false;
}

std::vector<DeviceUsage> measure_usage(const Trace& trace, const Lifetimes& lifetimes, const HeapUses& uses) {
  const HandledFailures handled(trace);
  std::vector<DeviceUsage> result;
  std::vector<UsageMoment> now(trace.devices.size());
  std::vector<std::size_t> slot_of_device;
  std::vector<char> framework;  // by slot
  for (std::size_t slot = 0; slot < trace.devices.size(); ++slot) {
    DeviceUsage usage;
    usage.device = trace.devices[slot].index;
    result.push_back(std::move(usage));
    framework.push_back(uses.has_framework(trace.devices[slot].index));
    if (slot_of_device.size() <= trace.devices[slot].index) slot_of_device.resize(trace.devices[slot].index + 1u);
    slot_of_device[trace.devices[slot].index] = slot;
  }
  const auto stretch = static_cast<std::uint32_t>(trace.events.size() / DeviceUsage::kCurvePoints + 1);

  for (std::size_t index = 0; index < trace.events.size(); ++index) {
    const Event& event = trace.events[index];
    if (event.device >= slot_of_device.size() || event.kind > EventKind::kUnmap) continue;
    if (event.has(kFailed)) continue;
    const HeapUse use = uses.of(event.heap);
    if (event.kind != EventKind::kAllocFailed && use == HeapUse::kElsewhere) continue;
    const std::size_t slot = slot_of_device[event.device];
    DeviceUsage& usage = result[slot];
    UsageMoment& moment = now[slot];
    const bool has_framework = framework[slot] != 0;
    moment.event = static_cast<std::uint32_t>(index);
    moment.time_ns = event.time_ns;
    switch (event.kind) {
      case EventKind::kAlloc:
        add(moment, use, use == HeapUse::kProgram ? lifetimes.held_bytes(event.allocation) : event.size_bytes,
            has_framework);
        break;
      case EventKind::kFree:
        if (event.allocation.value == 0) break;
        if (use != HeapUse::kProgram) {
          if (event.returns_to_heap()) take(moment, use, event.size_bytes, has_framework);
          break;
        }
        {
          const std::uint64_t bytes = lifetimes.held_bytes(event.allocation);
          if (event.phase() != FreePhase::kCompleted) take(moment, use, bytes, has_framework);
          if (event.phase() == FreePhase::kRequested) moment.pending += bytes;
          if (event.phase() == FreePhase::kCompleted) moment.pending -= std::min(moment.pending, bytes);
        }
        break;
      case EventKind::kAllocFailed:
        if (handled.contains(moment.event)) break;
        ++usage.failure_count;
        // the last one is always kept
        if (usage.failures.size() == DeviceUsage::kMaxFailures) usage.failures.pop_back();
        usage.failures.push_back(moment);
        break;
      case EventKind::kMap: add(moment, use, event.size_bytes, has_framework); break;
      case EventKind::kUnmap: take(moment, use, event.size_bytes, has_framework); break;
      default: break;
    }
    if (moment.allocated > usage.peak_allocated.allocated) usage.peak_allocated = moment;
    if (moment.reserved > usage.peak_reserved.reserved) usage.peak_reserved = moment;
    usage.peak_outside_bytes = std::max(usage.peak_outside_bytes, moment.outside);
    // What existed before has no order in time: it is where the curve begins.
    if (index + 1 >= trace.preexisting_count && trace.can(kEvents)) add_to_curve(usage, moment, stretch);
  }
  for (std::size_t slot = 0; slot < result.size(); ++slot) result[slot].end = now[slot];
  return result;
}

}  // namespace faultline
