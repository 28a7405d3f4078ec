#include "models/replayed_trace.h"

#include "trace/validate.h"

namespace faultline {

namespace {

Trace with_tables_of(const Trace& from) {
  Trace trace;
  for (std::size_t at = 0; at < from.strings.size(); ++at)
    trace.strings.intern(from.strings.at(StringId(static_cast<std::uint32_t>(at))));
  trace.stacks = from.stacks;
  trace.tensors = from.tensors;
  trace.launches = from.launches;
  trace.copies = from.copies;
  trace.faults = from.faults;
  trace.violations = from.violations;
  trace.heaps = from.heaps;
  trace.streams = from.streams;
  trace.devices = from.devices;
  trace.capabilities = from.capabilities | kAddresses;
  trace.source_kind = from.source_kind;
  trace.source_path = from.source_path;
  trace.source_events = from.source_events;
  trace.properties = from.properties;
  trace.properties[std::string(kPlacedBy)] = "replay";
  trace.lost = from.lost;
  trace.events.reserve(from.events.size());
  return trace;
}

}  // namespace

ReplayedTrace::ReplayedTrace(const Trace& recording, std::uint32_t largest_allocation)
    : trace_(with_tables_of(recording)), known_(largest_allocation + std::size_t{1}) {}

AllocationId ReplayedTrace::now_at(const Event& recorded, std::uint64_t address) {
  Known& known = known_[recorded.allocation.index()];
  known = {new_id(), recorded.address, address, recorded.stack, recorded.size_bytes};
  return known.id;
}

void ReplayedTrace::allocated(const Event& recorded, std::uint64_t address) {
  Event event = recorded;
  event.address = address;
  event.bits = 0;
  event.set(kAddressKnown);
  event.allocation = now_at(recorded, address);
  append(event);
}

void ReplayedTrace::freed(const Event& recorded, FreePhase phase) {
  const Known& known = known_[recorded.allocation.index()];
  Event event = recorded;
  event.allocation = known.id;
  event.address = known.replayed;
  event.bits = 0;
  event.set_phase(phase);
  event.set(kAddressKnown);
  append(event);
}

void ReplayedTrace::failed(const Event& recorded) {
  Event event = recorded;
  if (recorded.kind == EventKind::kAlloc) {
    event.kind = EventKind::kAllocFailed;
    event.allocation = {};
    event.extra = 0;
    event.address = 0;
    event.bits = 0;
  }
  append(event);
}

void ReplayedTrace::served_and_dropped(const Event& recorded, std::uint64_t address) {
  Event event = recorded;
  event.kind = EventKind::kAlloc;
  event.address = address;
  event.bits = 0;
  event.set(kAddressKnown);
  event.allocation = new_id();
  append(event);
  event.kind = EventKind::kFree;
  append(event);
}

void ReplayedTrace::copied(const Event& recorded) {
  Event event = recorded;
  const Known* known = this->known(event.allocation);
  if (makes_allocation(event.kind)) {
    if (known == nullptr || known->id.value != 0) return;
    keeps_its_place(event);
  }
  if (known != nullptr) {
    if (ends_allocation(event.kind) && known->id.value == 0) return;
    if (known->id.value != 0 && event.address != 0) event.address += known->replayed - known->recorded;
    event.allocation = known->id;
  }
  append(event);
}

}  // namespace faultline
