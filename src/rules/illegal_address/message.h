// What a message says of a kernel or of a GPU library that failed: access/illegal-address, access/misaligned, tensor/index-out-of-range, api/launch-error.
#pragma once

#include "rules/rule.h"

namespace faultline {

Finding describe_fault_message(const Case& subject);

}  // namespace faultline
