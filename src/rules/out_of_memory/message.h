// memory/out-of-memory from a message: of a framework's allocator, of the runtime, or of a library that asks the driver itself.
#pragma once

#include "rules/rule.h"

namespace faultline {

Finding describe_message(const Case& subject);

}  // namespace faultline
