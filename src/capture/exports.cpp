// Every function that libcuda.so.1 exports, under its own name, each with one pointer to the real function of that very name.
#include <atomic>

#include "capture/forward.h"
#include "capture/real_driver.h"

namespace faultline::capture {
namespace {

// Resolved at the first call. A driver older than the headers may lack the function: the answer is then the driver's own for what it does not have.
template <class Tag, class Function>
struct Exported;

template <class Tag, class... Arguments>
struct Exported<Tag, CUresult(Arguments...)> {
  std::atomic<void*>& real;
  Call call;

  CUresult operator()(Arguments... arguments) const {
    void* function = real.load(std::memory_order_acquire);
    if (function == nullptr) {
      function = real_symbol(call.name);
      if (function == nullptr) return real_library() == nullptr ? CUDA_ERROR_NO_DEVICE : CUDA_ERROR_NOT_SUPPORTED;
      real.store(function, std::memory_order_release);
    }
    return forward<Tag>(call, reinterpret_cast<CUresult (*)(Arguments...)>(function), arguments...);
  }
};

}  // namespace

void note_failure(const char* function, CUresult error) {
  const Recording recording;
  if (recording) recording->recorder().failed(*recording, function, error);
}

}  // namespace faultline::capture

#define FAULTLINE_DRIVER_EXPORT(symbol, base, stream, parameters, arguments)                                                     \
  extern "C" __attribute__((visibility("default"))) CUresult symbol parameters {                                                 \
    static constinit std::atomic<void*> real{nullptr};                                                                           \
    using namespace faultline;                                                                                                   \
    return capture::Exported<driver::Tag_##base, decltype(::symbol)>{real, {#symbol, driver::StreamKind::stream}} arguments;     \
  }
#include "driver_functions.inc"
#undef FAULTLINE_DRIVER_EXPORT
