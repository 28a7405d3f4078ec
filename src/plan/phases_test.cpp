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
  return plan.run.phases;
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

// The phases of lines, each "name bytes line".
std::vector<std::string> told(const std::string& lines) {
  const Trace trace = traced("source dry-run\ndevice 0 capacity=8GiB\nalloc #s 4GiB driver\n" + lines);
  const Facts facts(trace, {});
  Plan plan;
  describe_phases(facts, 0, true, plan);
  std::vector<std::string> all;
  for (const PlanPhase& phase : plan.run.phases)
    all.push_back(phase.name + " " + std::to_string(phase.allocated_bytes / kMiB) + " " +
                  std::to_string(phase.location.line));
  return all;
}

std::string mark(const std::string& name) { return "op-begin \"phase " + name + "\"\nop-end \"\"\n"; }

TEST(Phases, TheFirstBatchIsNoPartOfBuilding) {
  const std::string model = mark("building") + "alloc #p 100MiB at train.py:3 main\n";
  const auto round = [](const std::string& n) {
    return "alloc #b" + n + " 50MiB at train.py:5 main\n" + (n == "1" ? mark("training") : "") + "alloc #a" + n +
           " 300MiB at train.py:7 main\nfree #a" + n + "\nfree #b" + n + "\n";
  };
  EXPECT_EQ(told(model + round("1") + round("2")), (std::vector<std::string>{"building 100 3", "training 450 7"}));
  // made once before the loop: a part of building
  EXPECT_EQ(told(model + "alloc #f 20MiB at train.py:4 main\n" + round("1") + round("2")),
            (std::vector<std::string>{"building 120 4", "training 470 7"}));
}

TEST(Phases, AModelThatIsNotTrainedEvaluatesWhereNoStepFollows) {
  const std::string train = mark("training") + "alloc #a 300MiB at train.py:7 main\nfree #a\n";
  const std::string again = mark("training") + "alloc #b 200MiB at train.py:7 main\nfree #b\n";
  const std::string begin = mark("building") + "alloc #p 100MiB at train.py:3 main\n";
  const auto runs = [](const std::string& n) {
    return mark("untrained") + "alloc #" + n + " 500MiB at train.py:9 main\nfree #" + n + "\n";
  };
  EXPECT_EQ(told(begin + train + runs("u")),
            (std::vector<std::string>{"building 100 3", "training 400 7", "evaluation 600 9"}));
  // a teacher: a part of the next step
  EXPECT_EQ(told(begin + train + runs("u") + again), (std::vector<std::string>{"building 100 3", "training 600 9"}));
  // stopped within a teacher's pass
  EXPECT_EQ(told(begin + train + runs("u") + again + runs("v") + "op-begin \"dry run stopped\"\nop-end \"\"\n"),
            (std::vector<std::string>{"building 100 3", "training 600 9"}));
}

}  // namespace
}  // namespace faultline
