#include "capture/forward.h"

#include <cxxabi.h>

#include "capture/recorder.h"

namespace faultline::capture {

CUresult make_observed(const Call& call, Observed kind, Step<> make, Step<ObservedCall&> observe) {
  const Recording recording;
  if (!recording) return make();
  ObservedCall observed(call, *recording, make);
  if (kind == Observed::kCall && !recording->recorder().wants_calls()) [[unlikely]] {
    recording->leave_call_out();
    const CUresult result = make();
    guarded([&] { (void)observed.told(result); });
    return result;
  }
  try {
    return observe(observed);
  } catch (const abi::__forced_unwind&) {
    throw;
  } catch (...) {
    if (observed.is_under_way()) throw;
    recording_failed();
  }
  return observed.was_made() ? observed.result() : make();
}

void note_failure(const char* function, CUresult error) {
  guarded([&] {
    const Recording recording;
    if (recording) recording->recorder().failed(*recording, function, error);
  });
}

}  // namespace faultline::capture
