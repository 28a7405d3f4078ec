// memory/out-of-memory: a request that failed, and why.
//
// Three inputs tell of one: a recording of a framework's allocator, a request that went straight to the driver (of a library beside the framework, or of a program without
// one), and a message, which is judged where nothing recorded the failure itself. All three put their numbers into a Shortage, and cause.h decides.
#pragma once

#include "rules/rule.h"
#include "rules/shortage.h"

namespace faultline {

Finding describe_driver_failure(Case& subject, std::size_t slot, const UsageMoment& moment, std::uint64_t times);
Finding describe_message(Case& subject);

}  // namespace faultline
