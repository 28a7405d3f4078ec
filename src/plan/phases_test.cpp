#include "plan/phases.h"

#include <gtest/gtest.h>

#include "facts/facts_test_support.h"

namespace faultline {
namespace {

const char* const kLines =
    "source dry-run\ndevice 0 capacity=8GiB\nalloc #s 4GiB driver\n"
    "op-begin \"phase building\"\nop-end \"\"\nalloc #p 100MiB at train.py:3 main\n"
    "op-begin \"phase training\"\nop-end \"\"\nalloc #a 300MiB at train.py:7 main\nfree #a\n"
    "op-begin \"phase evaluation\"\nop-end \"\"\nalloc #e 50MiB at train.py:9 main\nfree #e\n"
    "op-begin \"phase training\"\nop-end \"\"\nalloc #b 200MiB at train.py:8 main\nfree #b\n"
    "op-begin \"phase saving\"\nop-end \"\"\n";

std::vector<PlanPhase> phases_of(bool trains) {
  const Trace trace = traced(kLines);
  const Facts facts(trace, {});
  Plan plan;
  describe_phases(facts, 0, trains, plan);
  return plan.phases;
}

TEST(Phases, EachHasItsFullestMomentAndTheLineOfIt) {
  const std::vector<PlanPhase> phases = phases_of(true);
  ASSERT_EQ(phases.size(), 4u);
  EXPECT_EQ(phases[0].name, "building");
  EXPECT_EQ(phases[0].allocated_bytes, 100 * kMiB);
  EXPECT_EQ(phases[1].name, "training");
  EXPECT_EQ(phases[1].times, 2u);
  EXPECT_EQ(phases[1].allocated_bytes, 400 * kMiB);
  EXPECT_EQ(phases[1].location.line, 7u);
  EXPECT_EQ(phases[2].allocated_bytes, 150 * kMiB);
  EXPECT_EQ(phases[2].location.line, 9u);
  EXPECT_EQ(phases[3].name, "saving");
  EXPECT_EQ(phases[3].allocated_bytes, 100 * kMiB);  // what was there when it began
}

TEST(Phases, WhatNeverComputesAGradientInfers) {
  const std::vector<PlanPhase> phases = phases_of(false);
  ASSERT_EQ(phases.size(), 3u);
  EXPECT_EQ(phases[1].name, "inference");
  EXPECT_EQ(phases[1].times, 1u);
}

}  // namespace
}  // namespace faultline
