#include "facts/kernel_name.h"

#include <gtest/gtest.h>

namespace faultline {
namespace {

TEST(KernelName, ATemplateLosesItsNoise) {
  constexpr std::string_view kFill =
      "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIfEESt5arrayIPcLm1EEEEviT0_T1_";
  EXPECT_EQ(kernel_name(kFill), "at::native::vectorized_elementwise_kernel");
  EXPECT_EQ(kernel_name_with_arguments(kFill),
            "at::native::vectorized_elementwise_kernel<4, FillFunctor<float>, array<char*, 1ul>>");
}

TEST(KernelName, APlainFunctionLosesItsParameters) { EXPECT_EQ(kernel_name("_Z5scalePfi"), "scale"); }

TEST(KernelName, AnAnonymousNamespaceIsNotShown) {
  EXPECT_EQ(kernel_name("_ZN2at6native12_GLOBAL__N_111softmax_fwdEPf"), "at::native::softmax_fwd");
}

TEST(KernelName, TritonsNamesStay) {
  EXPECT_EQ(kernel_name("triton_poi_fused_add_0"), "triton_poi_fused_add_0");
  EXPECT_EQ(kernel_name_with_arguments("_Zbroken"), "_Zbroken");
  EXPECT_EQ(kernel_name(""), "");
}

}  // namespace
}  // namespace faultline
