#include "facts/growth_lines.h"

#include <gtest/gtest.h>

#include <initializer_list>

namespace faultline {
namespace {

std::uint64_t visits(std::size_t rounds, std::initializer_list<std::uint64_t> sizes, std::uint64_t of_the_last = 0) {
  Tally line;
  for (std::size_t round = 0; round < rounds; ++round) {
    for (const std::uint64_t size : sizes) line.count_size(size), ++line.made, ++line.calls;
  }
  if (of_the_last != 0) line.count_size(of_the_last), ++line.made, ++line.calls;
  return line.visits();
}

// total += net(x.cuda()).mean(): what comes in and what is made of the result have one line, and one stack.
TEST(Tally, ALineThatMakesTensorsOfSeveralSizesIsComeToAsOftenAsEachIsMade) {
  EXPECT_EQ(visits(20, {1 << 20}), 20u);
  EXPECT_EQ(visits(20, {1 << 20, 4}), 20u);
  EXPECT_EQ(visits(20, {1 << 20, 4, 512}), 20u);
  EXPECT_EQ(visits(20, {1 << 20, 4}, 1 << 20), 21u);  // the last round was not ended
}

TEST(Tally, WhatDoesNotComeTogetherIsCountedByItself) {
  EXPECT_EQ(visits(20, {4, 4}), 40u);
  EXPECT_EQ(visits(20, {4, 4, 512}), 60u);
  EXPECT_EQ(visits(1, {1, 2, 3, 4, 5, 6}), 6u);  // each of a length of its own
  EXPECT_EQ(visits(0, {}), 0u);
}

}  // namespace
}  // namespace faultline
