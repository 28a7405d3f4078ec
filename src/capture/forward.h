// From a call of the program to the real driver: through the observer of that function where there is one, else straight on.
//
// A failed call is always told of, whatever the function. Results are never changed. This is also where trouble of our own stops: an exception that leaves an
// observer (no memory, a broken invariant) ends the recording, and the program gets what the driver answered, or the call is made now if it was not yet. What
// leaves the driver itself (a thread that is cancelled inside it) is none of ours and passes through.
#pragma once

#include <cxxabi.h>

#include "capture/observed_calls.h"
#include "capture/recorder.h"

namespace faultline::capture {

void note_failure(const char* function, CUresult error);

template <class Tag, class... Arguments>
CUresult forward(const Call& call, CUresult (*function)(Arguments...), Arguments... arguments) {
  const auto make = [&] { return function(arguments...); };
  if constexpr (kObserved<Tag> != Observed::kNo) {
    constexpr auto observer = Observer<Tag, CUresult (*)(Arguments...)>::function;
    if (observer != nullptr) [[likely]] {
      const Recording recording;
      if (!recording) return make();
      ObservedCall observed(call, *recording, make);
      if (kObserved<Tag> == Observed::kCall && !recording->recorder().wants_calls()) [[unlikely]] {
        recording->leave_call_out();
        const CUresult result = make();
        guarded([&] { (void)observed.told(result); });
        return result;
      }
      try {
        return observer(observed, arguments...);
      } catch (const abi::__forced_unwind&) {
        throw;
      } catch (...) {
        if (observed.is_under_way()) throw;
        recording_failed();
      }
      return observed.was_made() ? observed.result() : make();
    }
  }
  const CUresult result = make();
  if (result != CUDA_SUCCESS) [[unlikely]] note_failure(call.name, result);
  return result;
}

}  // namespace faultline::capture
