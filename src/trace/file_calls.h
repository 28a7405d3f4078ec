// How launches, copies and faults become bytes in a trace file, both directions side by side. The ids of strings in them are the file's.
//
// A kernel's pointers stand close together and on round addresses, so each is written as the difference from the one before it, divided by 512
// where that leaves nothing over: a launch with four of them takes about 30 bytes.
#pragma once

#include "trace/calls.h"
#include "trace/file_payload.h"

namespace faultline {

void put_launch(Payload& payload, const Launch& launch);
void put_copy(Payload& payload, const Copy& copy);
void put_fault(Payload& payload, const Fault& fault);

// What comes out is only worth something when the fields are still ok() afterwards.
Launch take_launch(PayloadFields& fields);
Copy take_copy(PayloadFields& fields);
Fault take_fault(PayloadFields& fields);

}  // namespace faultline
