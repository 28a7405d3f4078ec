// That an observer cannot have a signature which the driver does not have: everything here is decided when it is compiled.
#include "capture/observed_calls.h"

#include <gtest/gtest.h>

namespace faultline::capture {
namespace {

// Whether `CUresult observe::cuName(…)` of this signature could be defined: it must be one that is declared.
template <class Signature>
constexpr bool kFitsMemAlloc = requires {
  static_cast<Signature*>(&observe::cuMemAlloc);
};
static_assert(kFitsMemAlloc<CUresult(ObservedCall&, CUdeviceptr*, std::size_t)>);
static_assert(!kFitsMemAlloc<CUresult(ObservedCall&, CUdeviceptr*, int)>);
static_assert(!kFitsMemAlloc<CUresult(ObservedCall&, CUdeviceptr*)>);
static_assert(!kFitsMemAlloc<CUresult(CUdeviceptr*, std::size_t)>);

// A function that is not listed has no observer, whatever its signature.
template <class Signature>
constexpr bool kFitsDeviceGetCount = requires {
  static_cast<Signature*>(&observe::cuDeviceGetCount);
};
static_assert(!kFitsDeviceGetCount<CUresult(ObservedCall&, int*)>);

TEST(ObservedCalls, MemoryIsAlwaysObservedAndWorkOnlyWhileCallsAreWanted) {
  EXPECT_EQ(kObserved<driver::Tag_cuMemAlloc>, Observed::kAlways);
  EXPECT_EQ(kObserved<driver::Tag_cuLaunchKernel>, Observed::kCall);
  EXPECT_EQ(kObserved<driver::Tag_cuDeviceGetCount>, Observed::kNo);
}

}  // namespace
}  // namespace faultline::capture
