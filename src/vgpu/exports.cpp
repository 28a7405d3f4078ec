// Every symbol of libcuda.so.1 and every function behind cuGetProcAddress, generated from the list of driver functions.
#include <cstring>
#include <new>
#include <system_error>
#include <type_traits>

#include "vgpu/api.h"
#include "vgpu/call.h"

namespace faultline::vgpu {
namespace {

using driver::StreamKind;

// The functions that work before cuInit, in a forked child and inside host functions.
template <class Tag>
constexpr bool kAnyTime =
    std::is_same_v<Tag, driver::Tag_cuInit> || std::is_same_v<Tag, driver::Tag_cuDriverGetVersion> ||
    std::is_same_v<Tag, driver::Tag_cuGetProcAddress> || std::is_same_v<Tag, driver::Tag_cuGetErrorName> ||
    std::is_same_v<Tag, driver::Tag_cuGetErrorString>;

template <class Tag, StreamKind stream, class Function>
struct Answer;

template <class Tag, StreamKind stream, class... Parameters>
struct Answer<Tag, stream, CUresult(Parameters...)> {
  template <void (*function)(Parameters...)>
  static CUresult CUDAAPI enter(Parameters... arguments) noexcept {
    if (function == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
    const CUresult begun = begin_call(stream, kAnyTime<Tag>);
    if (begun != CUDA_SUCCESS) return begun;
    try {
      function(arguments...);
      return CUDA_SUCCESS;
    } catch (const Refused& refused) {
      return refused.code;
    } catch (const std::bad_alloc&) {
      return CUDA_ERROR_OUT_OF_MEMORY;
    } catch (const std::system_error&) {
      return CUDA_ERROR_OPERATING_SYSTEM;  // no thread to be had for a stream
    }
  }
};

void* const kVariantFunctions[] = {
#define FAULTLINE_DRIVER_VARIANT(base, version, stream, type) \
  reinterpret_cast<void*>(static_cast<type>(                  \
      &Answer<driver::Tag_##base, StreamKind::stream, std::remove_pointer_t<type>>::enter<&api::base>)),
#include "driver_functions.inc"
#undef FAULTLINE_DRIVER_VARIANT
};

CUdriverProcAddressQueryResult find_function(const char* symbol, void** function, int version, cuuint64_t flags) {
  constexpr cuuint64_t kKnownFlags = CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
  require(symbol != nullptr && function != nullptr && (flags & ~kKnownFlags) == 0);
  const StreamKind stream =
      (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0 ? StreamKind::kPerThread : StreamKind::kLegacy;
  const std::optional<std::size_t> at = driver::find_variant(symbol, version, stream);
  *function = at ? kVariantFunctions[*at] : nullptr;
  if (at) return CU_GET_PROC_ADDRESS_SUCCESS;
  constexpr int kAnyVersion = 1'000'000;
  return driver::find_variant(symbol, kAnyVersion, stream) ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                                                           : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
}

}  // namespace

void api::cuGetProcAddress(const char* symbol, void** function, int version, cuuint64_t flags) {
  require(find_function(symbol, function, version, flags) == CU_GET_PROC_ADDRESS_SUCCESS, CUDA_ERROR_NOT_FOUND);
}

void api::cuGetProcAddress(const char* symbol, void** function, int version, cuuint64_t flags,
                           CUdriverProcAddressQueryResult* status) {
  const CUdriverProcAddressQueryResult found = find_function(symbol, function, version, flags);
  if (status != nullptr) *status = found;
}

}  // namespace faultline::vgpu

#define FAULTLINE_DRIVER_EXPORT(symbol, base, stream, parameters, arguments)                                    \
  extern "C" __attribute__((visibility("default"))) CUresult CUDAAPI symbol parameters {                        \
    using Enter = faultline::vgpu::Answer<faultline::driver::Tag_##base, faultline::driver::StreamKind::stream, \
                                          CUresult parameters>;                                                 \
    return Enter::enter<&faultline::vgpu::api::base> arguments;                                                 \
  }
#include "driver_functions.inc"
#undef FAULTLINE_DRIVER_EXPORT
