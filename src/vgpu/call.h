// One call of the virtual driver, from the program's side.
//
// Every export and every function that cuGetProcAddress gives out goes through enter() in exports.cpp. It notes what stream 0 means to the call,
// refuses calls that the real driver refuses for their moment (before cuInit, in a forked child, inside a host function, while the program exits), and
// turns a Refused into the returned code. Refused is thrown and caught inside this library only; nothing is thrown into the program.
#pragma once

#include <cstring>
#include <type_traits>

#include "driver/functions.h"

namespace faultline::vgpu {

struct Refused {
  CUresult code;
};

[[noreturn]] inline void refuse(CUresult code) { throw Refused{code}; }
inline void require(bool holds, CUresult code = CUDA_ERROR_INVALID_VALUE) {
  if (!holds) refuse(code);
}

// What was asked for, put where the program wants it.
template <class Place, class Ask>
void answer(Place* place, const Ask& ask) {
  require(place != nullptr);
  *place = ask();
}
// The same where the kind of answer depends on the question.
template <class Value>
void answer_as(void* place, std::type_identity_t<Value> value) {
  std::memcpy(place, &value, sizeof value);
}

// What exports.cpp does first in every call. CUDA_SUCCESS: go on. `any_time`: the function works before cuInit too.
CUresult begin_call(driver::StreamKind stream, bool any_time);

driver::StreamKind stream_zero();  // what stream 0 means to the call that this thread is in

// While it lives, this thread runs a function of the program on a stream's behalf; the driver's functions refuse with CUDA_ERROR_NOT_PERMITTED.
class HostFunctionScope {
 public:
  HostFunctionScope();
  ~HostFunctionScope();
};

// The process's life: set by cuInit; a child made by fork after that can use the driver no more.
bool initialized();
void initialize();
bool forked_child();
bool exiting();  // the program has left main or called exit: streams start no further work

}  // namespace faultline::vgpu
