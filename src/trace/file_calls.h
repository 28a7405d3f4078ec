// How launches, copies, faults and violations become bytes in a trace file, both directions side by side. The ids of strings in them are the file's.
//
// A kernel's pointers stand close together and on round addresses, so each is written as the difference from the one before it, divided by 512
// where that leaves nothing over: a launch with four of them takes about 30 bytes.
#pragma once

#include "trace/calls.h"
#include "trace/file_payload.h"

namespace faultline {

template <class Call>
inline constexpr RecordTag kCallTag = RecordTag::kLaunch;
template <>
inline constexpr RecordTag kCallTag<Copy> = RecordTag::kCopy;
template <>
inline constexpr RecordTag kCallTag<Fault> = RecordTag::kFault;
template <>
inline constexpr RecordTag kCallTag<Violation> = RecordTag::kViolation;

void put_call(Payload& payload, const Launch& launch);
void put_call(Payload& payload, const Copy& copy);
void put_call(Payload& payload, const Fault& fault);
void put_call(Payload& payload, const Violation& violation);

// What comes out is only worth something when the fields are still ok() afterwards.
void take_call(PayloadFields& fields, Launch& launch);
void take_call(PayloadFields& fields, Copy& copy);
void take_call(PayloadFields& fields, Fault& fault);
void take_call(PayloadFields& fields, Violation& violation);

}  // namespace faultline
