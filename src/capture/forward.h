// From a call of the program to the real driver: through the observer of that function where there is one, else straight on.
//
// A failed call is always told of, whatever the function. Results are never changed. This is also where trouble of our own stops (forward.cpp): an exception that leaves an
// observer (no memory, a broken invariant) ends the recording, and the program gets what the driver answered, or the call is made now if it was not yet. What
// leaves the driver itself (a thread that is cancelled inside it) is none of ours and passes through.
#pragma once

#include "capture/observed_calls.h"

namespace faultline::capture {

// `make` makes the real call, `observe` gives it to its observer.
CUresult make_observed(const Call& call, Observed kind, Step<> make, Step<ObservedCall&> observe);
void note_failure(const char* function, CUresult error);

template <class Tag, class... Arguments>
CUresult forward(const Call& call, CUresult (*function)(Arguments...), Arguments... arguments) {
  const auto make = [&] { return function(arguments...); };
  if constexpr (kObserved<Tag> != Observed::kNo) {
    constexpr auto observer = Observer<Tag, CUresult (*)(Arguments...)>::function;
    const auto observe = [&](ObservedCall& observed) { return observer(observed, arguments...); };
    if (observer != nullptr) [[likely]]
      return make_observed(call, kObserved<Tag>, Step<>(make), Step<ObservedCall&>(observe));
  }
  const CUresult result = make();
  if (result != CUDA_SUCCESS) [[unlikely]]
    note_failure(call.name, result);
  return result;
}

}  // namespace faultline::capture
