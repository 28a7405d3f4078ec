// access/illegal-address and its kin: what the hardware or the driver reported of a kernel (Fault events).
//
// One fault may be told twice: by a core dump, which knows kernel, line, thread and addresses, and by the driver's error where the program met it. They
// make one finding. The dump's kind of exception decides the rule: an address that is not mapped is access/illegal-address, one that is not aligned
// access/misaligned; a failed check in one of PyTorch's index kernels is tensor/index-out-of-range; everything else api/launch-error. Without a dump the
// error came late: the kernels launched since the program last waited for the device are the candidates (candidates.h), put in order by what speaks for and
// against each (suspects.h), and none of them is called proved. Where nothing was recorded of the fault, a message may speak of it (message.cpp).
#pragma once

#include "rules/rule.h"

namespace faultline {

// What a message says of a kernel or of a GPU library that failed.
Finding describe_fault_message(const Case& subject);

}  // namespace faultline
