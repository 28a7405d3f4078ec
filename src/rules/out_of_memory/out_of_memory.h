// memory/out-of-memory: a request that failed, and why.
//
// Three inputs tell of one: a recording of a framework's allocator, a request that went straight to the driver (of a library beside the framework, or of a program without
// one), and a message, which is judged where nothing recorded the failure itself. All three put their numbers into a Shortage, and cause.h decides.
#pragma once

#include "rules/rule.h"

namespace faultline {

// Whether the failed request was the driver's to serve.
bool is_driver_request(const Trace& trace, const Event& failed);
Finding describe_driver_failure(Case& subject, std::size_t slot, const UsageMoment& moment, std::uint64_t times);
Finding describe_message(const Case& subject);

}  // namespace faultline
