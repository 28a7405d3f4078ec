#include "models/copied_tables.h"

namespace faultline {

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

}  // namespace faultline
