// memory/out-of-memory: a request that failed, and why.
//
// Three inputs tell of one: a recording of a framework's allocator, a request that went straight to the driver (of a library beside the framework, or of a program without
// one), and a message, which is judged where nothing recorded the failure itself. All three put their numbers into a Shortage, and cause.h decides.
#pragma once

#include "rules/out_of_memory/cause.h"
#include "rules/rule.h"

namespace faultline {

// Whether the failed request was the driver's to serve.
bool is_driver_request(const Trace& trace, const Event& failed);
Finding describe_driver_failure(Case& subject, std::size_t slot, const UsageMoment& moment, std::uint64_t times);
Finding describe_message(const Case& subject);

// The numbers of a request that failed in a framework's allocator.
Shortage shortage_of(const Case& subject, std::size_t slot, const UsageMoment& moment);
// What could be taken in segments when it failed: all that the device had, or what the program's own limit let through where that stopped it.
std::uint64_t segment_room(const Shortage& shortage, const DeviceUsage& usage, const UsageMoment& moment);
// A dry run on a GPU that grows: the request that failed is served next, and the program goes on.
bool is_served_after_all(const Trace& trace, std::uint32_t failure);
bool stopped_by_limit(const Shortage& shortage);

}  // namespace faultline
