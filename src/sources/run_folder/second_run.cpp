#include "sources/run_folder/second_run.h"

#include <algorithm>
#include <optional>

#include "base/units.h"
#include "sources/run_folder/place_faults.h"

namespace faultline {
namespace {

constexpr std::uint64_t kFarthestBytes = kTiB;   // farther from a pointer than any index error leads
constexpr std::uint64_t kNullBytes = 64 * kKiB;  // a null pointer and an offset: the same in every run

const Launch* launch_behind(const Trace& trace, std::size_t fault_event) {
  for (std::size_t index = fault_event; index-- > 0;) {
    const Event& event = trace.events[index];
    if (event.kind == EventKind::kLaunch && event.extra < trace.launches.size())
      return &trace.launches.at(LaunchId(event.extra));
    if (event.kind != EventKind::kFault) break;
  }
  return nullptr;
}

// By how much the pointer nearest to `address` lies elsewhere in the first run.
std::optional<std::uint64_t> moved_by(const Launch& launch, const Fault& fault, std::uint64_t address) {
  std::optional<std::uint64_t> shift;
  std::uint64_t nearest = kFarthestBytes;
  for (const LaunchArgument& word : fault.parameters) {
    const auto same = [&](const LaunchArgument& argument) { return argument.offset_bytes == word.offset_bytes; };
    const auto at = std::find_if(launch.arguments.begin(), launch.arguments.end(), same);
    const std::uint64_t distance = word.address > address ? word.address - address : address - word.address;
    if (at == launch.arguments.end() || distance >= nearest) continue;
    nearest = distance;
    shift = at->address - word.address;
  }
  return shift;
}

void carry_over(Trace& trace, std::size_t index) {
  Event& event = trace.events[index];
  Fault fault = trace.faults.at(FaultId(event.extra));
  const Launch* launch = launch_behind(trace, index);
  const bool is_same_kernel = launch != nullptr && launch->kernel == fault.kernel;
  std::vector<std::uint64_t> addresses;
  const auto move = [&](std::uint64_t address) -> std::optional<std::uint64_t> {
    if (address < kNullBytes) return address;
    const std::optional<std::uint64_t> shift = is_same_kernel ? moved_by(*launch, fault, address) : std::nullopt;
    return shift ? std::optional(address + *shift) : std::nullopt;
  };
  for (const std::uint64_t address : fault.addresses) {
    if (const auto moved = move(address)) addresses.push_back(*moved);
  }
  if (event.has(kAddressKnown)) {
    const std::optional<std::uint64_t> moved = move(event.address);
    event.address = moved.value_or(0);
    if (!moved) event.bits = static_cast<std::uint8_t>(event.bits & ~(kAddressKnown << 2));
  }
  fault.addresses = std::move(addresses);
  fault.parameters = is_same_kernel ? launch->arguments : std::vector<LaunchArgument>();
  event.extra = trace.faults.intern(fault).value;
}

}  // namespace

void place_second_run(Trace& trace, const Trace& core) {
  const auto is_dumped = [&](const Event& event) {
    return event.kind == EventKind::kFault && event.extra < trace.faults.size() &&
           trace.faults.at(FaultId(event.extra)).reported_by.value == 0;
  };
  // the first run has a dump of its own: nothing is added to it
  if (std::any_of(trace.events.begin(), trace.events.end(), is_dumped)) return;
  place_faults(trace, core);
  for (std::size_t index = 0; index < trace.events.size(); ++index) {
    if (is_dumped(trace.events[index])) carry_over(trace, index);
  }
}

}  // namespace faultline
