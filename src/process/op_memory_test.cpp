#include "process/op_memory.h"

#include <gtest/gtest.h>

#include "base/units.h"

namespace faultline::process {
namespace {

TEST(OpMemory, WhatIsToldIsRead) {
  const auto told = operations_memory({"my::op=64MiB", "a::b=0,like=1,dtype=float16,shape=0.0x2*0.1x64"});
  ASSERT_TRUE(told.ok());
  ASSERT_EQ(told->size(), 2u);
  EXPECT_EQ((*told)[0].name, "my::op");
  EXPECT_EQ((*told)[0].scratch_bytes, 64 * kMiB);
  EXPECT_TRUE((*told)[0].results.empty());
  const OperationMemory& second = (*told)[1];
  EXPECT_EQ(second.scratch_bytes, 0u);
  ASSERT_EQ(second.results.size(), 2u);
  EXPECT_EQ(second.results[0].like, 1u);
  EXPECT_EQ(second.results[0].dtype, "float16");
  EXPECT_EQ(second.results[1].shape, (std::vector<std::string>{"0.0", "2*0.1", "64"}));
  EXPECT_FALSE(second.results[1].like.has_value());
}

TEST(OpMemory, WhatCannotBeMeantIsRefusedWithAnExample) {
  for (const char* text : {"", "op", "op=3MiB", "my::op", "::op=1MiB", "my::=1MiB", "my::op=", "my::op=lots",
                           "my::op=1MiB,like=", "my::op=1MiB,like=-1", "my::op=1MiB,like=x",
                           "my::op=0,shape=", "my::op=0,shape=0.0x", "my::op=0,shape=0.0.0", "my::op=0,shape=a",
                           "my::op=0,dtype=float16", "my::op=0,like=0,dtype=float17", "my::op=0,out=3"}) {
    const auto told = operations_memory({text});
    ASSERT_FALSE(told.ok()) << text;
    EXPECT_NE(told.error().message().find("for example my::op=64MiB,like=0"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace faultline::process
