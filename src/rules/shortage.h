// The numbers of a request that failed in a recording, as cause.h weighs them.
#pragma once

#include "rules/cause.h"
#include "rules/rule.h"

namespace faultline {

// Whether the failed request was the driver's to serve.
bool is_driver_request(const Trace& trace, const Event& failed);
// Of a request that failed in a framework's allocator.
Shortage shortage_of(const Case& subject, std::size_t slot, const UsageMoment& moment);
// What could be taken in segments when it failed: all that the device had, or what the program's own limit let through where that stopped it.
std::uint64_t segment_room(const Shortage& shortage, const DeviceUsage& usage, const UsageMoment& moment);
bool stopped_by_limit(const Shortage& shortage);

}  // namespace faultline
