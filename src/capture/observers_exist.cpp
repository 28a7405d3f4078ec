// Every signature that the driver has had for an observed function since CUDA 3.2 has an observer: without one of them this does not link.
#define FAULTLINE_OBSERVER_LINKAGE [[gnu::visibility("hidden")]]
#include "capture/observed_calls.h"

namespace faultline::capture {
namespace {

template <class Tag, int version, class Pointer>
void name_observer(const void** place) {
  if constexpr (kObserved<Tag> != Observed::kNo && version >= 3020)
    *place = reinterpret_cast<const void*>(Observer<Tag, Pointer>::function);
}

}  // namespace

// Called by nobody.
[[gnu::used, gnu::retain]] void name_observers(const void** place) {
#define FAULTLINE_DRIVER_VARIANT(base, version, stream, type) name_observer<driver::Tag_##base, version, type>(place++);
#include "driver_functions.inc"
#undef FAULTLINE_DRIVER_VARIANT
}

}  // namespace faultline::capture
