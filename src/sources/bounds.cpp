#include "sources/bounds.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "base/units.h"
#include "trace/validate.h"

namespace faultline {
namespace {

// The devices with the most events; of equal ones the first.
std::vector<bool> busiest_devices(const Trace& trace) {
  std::vector<std::uint64_t> events(65536);
  for (const Event& event : trace.events) {
    if (happens_on_device(event.kind)) ++events[event.device];
  }
  std::vector<std::uint16_t> order;
  for (const Device& device : trace.devices) order.push_back(device.index);
  std::stable_sort(order.begin(), order.end(), [&](std::uint16_t a, std::uint16_t b) { return events[a] > events[b]; });
  std::vector<bool> kept(65536);
  for (std::size_t i = 0; i < std::min(order.size(), kMostDevices); ++i) kept[order[i]] = true;
  return kept;
}

void drop_events(Trace& trace, const std::vector<bool>& kept) {
  const auto is_dropped = [&](const Event& event) { return happens_on_device(event.kind) && !kept[event.device]; };
  std::vector<std::uint32_t> renumbered(std::size_t{trace.allocation_count} + 1);
  std::uint32_t allocations = 0;
  std::uint64_t preexisting = 0;
  for (std::size_t i = 0; i < trace.events.size(); ++i) {
    const Event& event = trace.events[i];
    if (is_dropped(event)) continue;
    if (makes_allocation(event.kind)) renumbered[event.allocation.index()] = ++allocations;
    if (i < trace.preexisting_count) ++preexisting;
  }
  trace.preexisting_count = static_cast<std::uint32_t>(preexisting);
  trace.allocation_count = allocations;
  const std::size_t before = trace.events.size();
  std::erase_if(trace.events, is_dropped);
  for (Event& event : trace.events) event.allocation = AllocationId(renumbered[event.allocation.index()]);
  trace.count("events of devices that are not looked at", before - trace.events.size());
}

void merge_counters(Trace& trace) {
  std::uint64_t others = 0;
  const auto last = std::next(trace.lost.begin(), kMostCounters - 1);
  for (auto at = last; at != trace.lost.end(); ++at) others += at->second;
  trace.lost.erase(last, trace.lost.end());
  trace.count("other counters", others);
}

}  // namespace

Error absurd_size(std::string_view whose, std::uint64_t size_bytes) {
  // What is negative was read as all bits set, what is beyond 63 bits as the most of them.
  constexpr std::uint64_t kMost = ~std::uint64_t{0} >> 1;
  const std::string said = size_bytes == ~std::uint64_t{0}
                               ? "is negative, or no whole number, or beyond all memory"
                               : fmt::format("is {} bytes{}, and no device has more than {}",
                                             size_bytes >= kMost ? "2^63" : format_count(size_bytes),
                                             size_bytes >= kMost ? " or more" : "", format_bytes(kMostDeviceBytes));
  return Error{fmt::format("{} {}", whose, said), {}, "The file is damaged, or was not written by what it looks like."};
}

Status check_sizes(const Trace& trace) {
  for (const Device& device : trace.devices) {
    if (const std::uint64_t most = std::max(device.capacity_bytes, device.allowed_bytes); most > kMostDeviceBytes)
      return absurd_size(fmt::format("the memory of device {}", device.index), most);
  }
  if (trace.source_kind == "dry-run" || trace.properties.contains(std::string(kPlacedBy))) return Ok{};
  for (const Event& event : trace.events) {
    const bool takes = makes_allocation(event.kind) || event.kind == EventKind::kMap;
    if (takes && event.size_bytes > kMostDeviceBytes)
      return absurd_size(fmt::format("the size of event {} ({})", &event - trace.events.data(), name_of(event.kind)),
                         event.size_bytes);
  }
  for (const FinalSegment& segment : trace.final_segments) {
    if (segment.size_bytes > kMostDeviceBytes)
      return absurd_size(fmt::format("the size of the segment at {:#x}", segment.address), segment.size_bytes);
  }
  return Ok{};
}

void keep_in_bounds(Trace& trace) {
  if (trace.strings.cut_count() != 0) trace.lost["texts cut at 64 KiB"] = trace.strings.cut_count();
  if (trace.lost.size() > kMostCounters) merge_counters(trace);
  if (trace.devices.size() <= kMostDevices) return;
  const std::vector<bool> kept = busiest_devices(trace);
  drop_events(trace, kept);
  const std::size_t before = trace.devices.size();
  std::erase_if(trace.devices, [&](const Device& device) { return !kept[device.index]; });
  std::erase_if(trace.final_segments, [&](const FinalSegment& segment) { return !kept[segment.device]; });
  trace.count("devices beyond the " + std::to_string(kMostDevices) + " with the most events, which are not looked at",
              before - trace.devices.size());
}

}  // namespace faultline
