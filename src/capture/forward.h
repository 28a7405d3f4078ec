// From a call of the program to the real driver: through the observer of that function where there is one, else straight on.
//
// A failed call is always told of, whatever the function. Results are never changed.
#pragma once

#include "capture/observed_calls.h"
#include "capture/recorder.h"

namespace faultline::capture {

void note_failure(const char* function, CUresult error);

template <class Tag, class... Arguments>
CUresult forward(const Call& call, CUresult (*real)(Arguments...), Arguments... arguments) {
  if constexpr (Observer<Tag, CUresult(Arguments...)>::kExists) {
    const Recording recording;
    if (recording) return Observer<Tag, CUresult(Arguments...)>::call(*recording, call, real, arguments...);
    return real(arguments...);
  } else {
    const CUresult result = real(arguments...);
    if (result != CUDA_SUCCESS) [[unlikely]] note_failure(call.name, result);
    return result;
  }
}

}  // namespace faultline::capture
