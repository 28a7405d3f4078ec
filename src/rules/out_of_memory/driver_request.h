// A request that went to the driver itself and failed: of a library beside the framework, or of a program without one.
//
// Causes are told apart as for a framework's request, with one more: memory that the framework keeps idle would have served, but it gives that back for
// its own requests only.
#pragma once

#include "rules/rule.h"

namespace faultline {

// Whether the failed request was the driver's to serve.
bool is_driver_request(const Trace& trace, const Event& failed);

Finding describe_driver_failure(Case& subject, std::size_t slot, const UsageMoment& moment, std::uint64_t times);

}  // namespace faultline
