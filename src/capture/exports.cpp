// Every function that libcuda.so.1 exports, under its own name, each with one pointer to the real function of that very name.
#include <atomic>

#include "capture/forward.h"
#include "capture/real_driver.h"

namespace faultline::capture {
namespace {

// Resolved together at the first call of any: later calls come with locks of the program's libraries held, and must not wait for the loader's. A driver older than the headers
// may lack a function: the answer is then the driver's own for what it does not have.
enum SymbolIndex : std::size_t {
#define FAULTLINE_DRIVER_EXPORT(symbol, base, stream, parameters, arguments) kSymbol_##symbol,
#include "driver_functions.inc"
#undef FAULTLINE_DRIVER_EXPORT
  kSymbolCount
};
constexpr const char* kSymbols[kSymbolCount] = {
#define FAULTLINE_DRIVER_EXPORT(symbol, base, stream, parameters, arguments) #symbol,
#include "driver_functions.inc"
#undef FAULTLINE_DRIVER_EXPORT
};
constinit std::atomic<void*> real_symbols[kSymbolCount] = {};
constinit std::atomic<bool> are_resolved{false};

void resolve_symbols() {
  for (std::size_t at = 0; at < kSymbolCount; ++at)
    real_symbols[at].store(real_symbol(kSymbols[at]), std::memory_order_relaxed);
  are_resolved.store(true, std::memory_order_release);
}

template <class Tag, class Function>
struct Exported;

template <class Tag, class... Arguments>
struct Exported<Tag, CUresult(Arguments...)> {
  SymbolIndex symbol;
  Call call;

  CUresult operator()(Arguments... arguments) const {
    if (!are_resolved.load(std::memory_order_acquire)) [[unlikely]]
      resolve_symbols();
    void* const function = real_symbols[symbol].load(std::memory_order_relaxed);
    if (function == nullptr) return real_library() == nullptr ? CUDA_ERROR_NO_DEVICE : CUDA_ERROR_NOT_SUPPORTED;
    return forward<Tag>(call, reinterpret_cast<CUresult (*)(Arguments...)>(function), arguments...);
  }
};

}  // namespace

}  // namespace faultline::capture

#define FAULTLINE_DRIVER_EXPORT(symbol, base, stream, parameters, arguments)     \
  extern "C" __attribute__((visibility("default"))) CUresult symbol parameters { \
    using namespace faultline;                                                   \
    return capture::Exported<driver::Tag_##base, decltype(::symbol)> {           \
      capture::kSymbol_##symbol, { #symbol, driver::StreamKind::stream }         \
    }                                                                            \
    arguments;                                                                   \
  }
#include "driver_functions.inc"
#undef FAULTLINE_DRIVER_EXPORT
