#include "plan/number_names.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "plan/vary.h"

namespace faultline {
namespace {

TEST(NumberNames, EveryNameOfABatchIsOneInTheCommand) {
  for (const std::string_view name : number_names(NumberKind::kBatch)) {
    std::string argument = "--" + std::string(name);
    std::replace(argument.begin(), argument.end(), '_', '-');
    EXPECT_TRUE(find_in_command({"train.py", argument, "32"}, "")) << argument;
    EXPECT_TRUE(find_in_command({"train.py", argument + "=32"}, "")) << argument;
  }
  EXPECT_TRUE(find_in_command({"train.py", "-b", "32"}, ""));
}

TEST(NumberNames, WhatMeansSomethingElseIsNoBatch) {
  for (const NumberKind kind : {NumberKind::kServed, NumberKind::kLength, NumberKind::kGenerated}) {
    for (const std::string_view name : number_names(kind))
      EXPECT_FALSE(find_in_command({"train.py", "--" + std::string(name), "32"}, "")) << name;
  }
}

}  // namespace
}  // namespace faultline
