// cuGetProcAddress: how programs, the CUDA runtime and every framework find the driver's functions.
//
// The real driver answers first. If the function is one of the list, and the real pointer is exactly the one that the driver gives for that variant
// (version and stream flag as the list has them), the program gets our wrapper of that variant, which keeps that pointer and no other.
// Anything else (a function or a variant newer than our headers) is passed through as the driver gave it, and counted.
#include <atomic>
#include <cstring>

#include "capture/forward.h"
#include "capture/real_driver.h"
#include "capture/recorder.h"

namespace faultline::capture {
namespace {

enum VariantIndex : std::size_t {
#define FAULTLINE_DRIVER_VARIANT(base, version, stream, type) kIndex_##base##_##version##_##stream,
#include "driver_functions.inc"
#undef FAULTLINE_DRIVER_VARIANT
  kVariantCount
};

constexpr const char* kNames[kVariantCount] = {
#define FAULTLINE_DRIVER_VARIANT(base, version, stream, type) #base,
#include "driver_functions.inc"
#undef FAULTLINE_DRIVER_VARIANT
};

constinit std::atomic<void*> real_variants[kVariantCount] = {};

template <std::size_t kIndex, class Tag, driver::StreamKind kStream, class Pointer>
struct VariantWrapper;

template <std::size_t kIndex, class Tag, driver::StreamKind kStream, class... Arguments>
struct VariantWrapper<kIndex, Tag, kStream, CUresult (*)(Arguments...)> {
  static CUresult call(Arguments... arguments) {
    // set before the program could have this address
    void* real = real_variants[kIndex].load(std::memory_order_relaxed);
    return forward<Tag>(Call{kNames[kIndex], kStream}, reinterpret_cast<CUresult (*)(Arguments...)>(real),
                        arguments...);
  }
};

void* const wrappers[kVariantCount] = {
#define FAULTLINE_DRIVER_VARIANT(base, version, stream, type)                                       \
  reinterpret_cast<void*>(&VariantWrapper<kIndex_##base##_##version##_##stream, driver::Tag_##base, \
                                          driver::StreamKind::stream, type>::call),
#include "driver_functions.inc"
#undef FAULTLINE_DRIVER_VARIANT
};

bool is_variant(std::size_t index, void* real) {
  void* known = real_variants[index].load(std::memory_order_acquire);
  if (known == nullptr) {
    const driver::Variant& variant = driver::all_variants()[index];
    const cuuint64_t flags = variant.stream == driver::StreamKind::kPerThread
                                 ? CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM
                                 : CU_GET_PROC_ADDRESS_LEGACY_STREAM;
    CUdriverProcAddressQueryResult found;
    const OwnCalls& ask = own();
    CUresult result = CUDA_ERROR_NOT_FOUND;
    if (ask.get_proc_address != nullptr)
      result = ask.get_proc_address(kNames[index], &known, variant.version, flags, &found);
    else if (ask.get_proc_address_11 != nullptr)
      result = ask.get_proc_address_11(kNames[index], &known, variant.version, flags);
    if (result != CUDA_SUCCESS) return false;
    real_variants[index].store(known, std::memory_order_release);
  }
  return known == real;
}

void* answer(ThreadRecorder& thread, const char* symbol, void* real, int version, cuuint64_t flags) {
  const auto stream = flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM ? driver::StreamKind::kPerThread
                                                                            : driver::StreamKind::kLegacy;
  const auto other =
      stream == driver::StreamKind::kLegacy ? driver::StreamKind::kPerThread : driver::StreamKind::kLegacy;
  for (const driver::StreamKind kind : {stream, other}) {
    const std::optional<std::size_t> index = driver::find_variant(symbol, version, kind);
    if (index && is_variant(*index, real)) return wrappers[*index];
  }
  thread.recorder().count_passed_through();
  return real;
}

CUresult answered(ObservedCall& call, const char* symbol, void** pointer, int version, cuuint64_t flags) {
  const CUresult result = call.real();
  if (result == CUDA_SUCCESS && symbol != nullptr && pointer != nullptr && *pointer != nullptr)
    *pointer = answer(call.thread, symbol, *pointer, version, flags);
  return result;
}

}  // namespace

CUresult observe::cuGetProcAddress(ObservedCall& call, const char* symbol, void** pointer, int version,
                                   cuuint64_t flags) {
  return answered(call, symbol, pointer, version, flags);
}
CUresult observe::cuGetProcAddress(ObservedCall& call, const char* symbol, void** pointer, int version,
                                   cuuint64_t flags, CUdriverProcAddressQueryResult*) {
  return answered(call, symbol, pointer, version, flags);
}

}  // namespace faultline::capture
