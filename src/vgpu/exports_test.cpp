#include <dlfcn.h>
#include <gtest/gtest.h>

#include <string>

#include "driver/functions.h"

namespace faultline::vgpu {
namespace {

TEST(VirtualDriverExports, EverySymbolOfTheListIsThere) {
#define FAULTLINE_DRIVER_EXPORT(symbol, base, stream, parameters, arguments) \
  EXPECT_NE(dlsym(RTLD_DEFAULT, #symbol), nullptr) << #symbol;
#include "driver_functions.inc"
#undef FAULTLINE_DRIVER_EXPORT
}

// Variants of one signature share their function; the streams' kinds do not.
TEST(VirtualDriverExports, EveryVariantIsAnswered) {
  for (const driver::Variant& variant : driver::all_variants()) {
    const cuuint64_t flags = variant.stream == driver::StreamKind::kPerThread
                                 ? CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM
                                 : CU_GET_PROC_ADDRESS_LEGACY_STREAM;
    void* function = nullptr;
    CUdriverProcAddressQueryResult status{};
    const std::string base(variant.base);
    EXPECT_EQ(cuGetProcAddress_v2(base.c_str(), &function, variant.version, flags, &status), CUDA_SUCCESS);
    EXPECT_EQ(status, CU_GET_PROC_ADDRESS_SUCCESS) << base;
    EXPECT_NE(function, nullptr) << base;
  }
  const auto found = [](const char* base, cuuint64_t flags) {
    void* function = nullptr;
    EXPECT_EQ(cuGetProcAddress(base, &function, 13000, flags), CUDA_SUCCESS);
    return function;
  };
  EXPECT_NE(found("cuMemcpyHtoD", CU_GET_PROC_ADDRESS_LEGACY_STREAM),
            found("cuMemcpyHtoD", CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM));
  EXPECT_EQ(found("cuMemAlloc", CU_GET_PROC_ADDRESS_LEGACY_STREAM),
            found("cuMemAlloc", CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM));
}

TEST(VirtualDriverExports, TheFirstCuGetProcAddressSaysNotFoundByItsResult) {
  void* function = nullptr;
  EXPECT_EQ(cuGetProcAddress("cuNoSuchThing", &function, 13000, 0), CUDA_ERROR_NOT_FOUND);
  EXPECT_EQ(cuGetProcAddress("cuInit", &function, 13000, 0), CUDA_SUCCESS);
}

}  // namespace
}  // namespace faultline::vgpu
