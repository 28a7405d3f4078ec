#include "facts/steps.h"

#include "facts/facts_test_support.h"

namespace faultline {
namespace {

using Ends = std::vector<std::uint32_t>;

TEST(Steps, OptimizerStepsAreNamedByTheirOptimizer) {
  const Trace trace =
      traced("alloc 512\nstep 1 Optimizer.step#AdamW.step\nalloc 512\nstep 2 Optimizer.step#AdamW.step\n");
  const Steps steps = find_steps(trace);
  EXPECT_EQ(steps.ends, (Ends{1, 3}));
  EXPECT_EQ(steps.how, "optimizer steps (AdamW)");
}

TEST(Steps, OfTwoOptimizersTheMoreFrequentCounts) {
  const Trace trace =
      traced("step 1 Optimizer.step#Adam.step\nstep 1 Optimizer.step#SGD.step\nstep 2 Optimizer.step#SGD.step\n");
  EXPECT_EQ(find_steps(trace).how, "optimizer steps (SGD)");
  EXPECT_EQ(find_steps(trace).ends, (Ends{1, 2}));
}

TEST(Steps, AmongEqualsTheFirstCounts) {
  const Trace trace = traced(
      "step 1 Optimizer.step#SGD.step\nstep 1 Optimizer.step#Adam.step\nstep 2 Optimizer.step#SGD.step\nstep 2 "
      "Optimizer.step#Adam.step\n");
  EXPECT_EQ(find_steps(trace).how, "optimizer steps (SGD)");
}

TEST(Steps, ProfilerStepsDifferOnlyByTheirNumber) {
  const Trace trace = traced("step 1 \"ProfilerStep#1\"\nstep 2 \"ProfilerStep#2\"\n");
  EXPECT_EQ(find_steps(trace).how, "profiler steps");
  EXPECT_EQ(find_steps(trace).ends, (Ends{0, 1}));
}

TEST(Steps, MarksWithoutANameAreStepsAllTheSame) {
  const Trace trace = traced("step 1\nstep 2\n");
  EXPECT_EQ(find_steps(trace).how, "steps");
  EXPECT_EQ(find_steps(trace).ends.size(), 2u);
}

TEST(Steps, NoMarksNoSteps) {
  const Trace trace = traced("alloc 512\n");
  EXPECT_TRUE(find_steps(trace).ends.empty());
  EXPECT_TRUE(find_steps(trace).how.empty());
}

TEST(Steps, RecordedTrainingHasAsManyAsItsLoop) {
  EXPECT_EQ(find_steps(recording("train_clean")).ends.size(), 12u);
  EXPECT_EQ(find_steps(recording("train_keeps_outputs")).ends.size(), 25u);
  EXPECT_EQ(find_steps(recording("gpt")).ends.size(), 4u);
  EXPECT_EQ(find_steps(recording("gan_two_optimizers")).ends.size(), 16u);  // both are Adam, so both mark
  EXPECT_TRUE(find_steps(recording("eval_keeps_graph")).ends.empty());
}

}  // namespace
}  // namespace faultline
