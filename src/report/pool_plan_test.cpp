// Plans of programs whose framework has a pool of its own, on the terminal.
#include <gtest/gtest.h>

#include <regex>

#include "base/units.h"
#include "report/plan_text.h"
#include "report/terminal.h"

namespace faultline {
namespace {

Plan in_a_pool(const std::string& framework, std::uint64_t live_bytes, std::uint64_t pool_bytes) {
  Plan plan;
  plan.verdict = Verdict::kFits;
  plan.command = {"python", "train.py"};
  plan.gpu = PlanGpu{"Tesla T4", 15 * kGiB, "measured", 144 * kMiB, "measured"};
  plan.pool.framework = framework;
  plan.peak.live = {{"tensors", live_bytes}};
  plan.pool.bytes = pool_bytes;
  plan.context_bytes = kGiB;
  plan.need.bytes = pool_bytes + kGiB;
  plan.need.taken_bytes = plan.need.bytes;
  return plan;
}

// In one line, as if the terminal were as wide.
std::string told(Plan plan, std::vector<Finding> findings = {}) {
  Report report;
  report.findings = std::move(findings);
  report.plan = std::move(plan);
  return std::regex_replace(to_terminal(report, {}), std::regex("\\s+"), " ");
}

bool has(const std::string& text, const std::string& words) { return text.find(words) != std::string::npos; }

TEST(PoolPlan, WhatThePoolNeedsBesideWhatIsInUseIsExplained) {
  for (const auto& [live, pool, explained] :
       {std::tuple(8 * kGiB, 11 * kGiB, true), std::tuple(8 * kGiB, 8 * kGiB + 100 * kMiB, false),
        std::tuple(kMiB, 32 * kMiB, false), std::tuple(8 * kGiB, 8 * kGiB, false)}) {
    const std::string text = told(in_a_pool("tensorflow", live, pool));
    EXPECT_EQ(has(text, "is in use at one time; the pool needs"), explained) << text;
    EXPECT_TRUE(!explained || has(text, "At most 8.00 GiB is in use at one time; the pool needs 3.00 GiB more"));
  }
}

TEST(PoolPlan, TheReserveAndStepsAreNamedAsTheFrameworkHasThem) {
  EXPECT_TRUE(has(told(in_a_pool("tensorflow", kGiB, kGiB)), "1.00 GiB context and TensorFlow's reserve"));
  EXPECT_FALSE(has(told(in_a_pool("jax", kGiB, kGiB)), "reserve"));
  EXPECT_TRUE(has(told(in_a_pool("jax", kGiB, kGiB)), "seen the whole program in"));
  Plan stepped = in_a_pool("jax", kGiB, kGiB);
  stepped.run.steps = 3;
  EXPECT_TRUE(has(told(std::move(stepped)), "seen 3 steps in"));
  for (const char* framework : {"jax", ""}) {
    Plan outside = in_a_pool(framework, kGiB, kGiB);
    outside.peak.outside_bytes = kGiB;
    EXPECT_TRUE(has(told(std::move(outside)), *framework ? "1.00 GiB beside the pool" : "outside PyTorch's allocator"));
  }
}

TEST(PoolPlan, TheShareIsNamedByItsUsualSettingOnlyWhereNoneIsSet) {
  Plan usual = in_a_pool("jax", kGiB, kGiB), set = usual;
  usual.pool.share = 0.75;
  set.pool.share = 0.5;
  EXPECT_TRUE(has(told(std::move(usual)), "may take 75 % of a GPU (XLA_CLIENT_MEM_FRACTION)."));
  EXPECT_TRUE(has(told(std::move(set)), "may take 50 % of a GPU, as is set."));
}

TEST(PoolPlan, AProgramForTensorFlow1IsToldWhatRunsIt) {
  for (const auto& [message, advice] :
       {std::pair("module 'tensorflow' has no attribute 'placeholder'", "import tensorflow.compat.v1 as tf"),
        std::pair("The Session graph is empty. Add operations", "disable_eager_execution()"),
        std::pair("unsupported operand type(s)", "")}) {
    Plan plan = in_a_pool("tensorflow", 0, 0);
    plan.verdict = Verdict::kProgramError;
    plan.trouble.exception = PlanException{"AttributeError", message, {"train.py", 2, "", {}, {}}};
    const std::string text = told(std::move(plan));
    EXPECT_EQ(has(text, " try "), advice[0] != 0) << text;
    EXPECT_TRUE(has(text, advice)) << text;
  }
}

TEST(PoolPlan, WhatMayBeALeakStandsBeforeLargerGpusAndInTheSummary) {
  for (const bool grows : {true, false}) {
    Plan plan = in_a_pool("tensorflow", 20 * kGiB, 20 * kGiB);
    plan.verdict = Verdict::kDoesNotFit;
    plan.failure.happened = true;
    plan.tried.where = {{PlanGpu{"NVIDIA H200", 140 * kGiB, "measured", 500 * kMiB, "measured"}, ""}};
    Finding failure, leak;
    failure.rule = "memory/out-of-memory";
    failure.severity = Severity::kError;
    leak.rule = "memory/leak";
    leak.severity = Severity::kWarning;
    leak.bytes = 19 * kGiB;
    leak.location = {"train.py", 6, "", {}, {}};
    if (grows) leak.evidence = {{"full_at_step", 210}};
    const std::string text = told(std::move(plan), {failure, leak});
    EXPECT_EQ(has(text, "19.00 GiB of what it needs piled up at one line"), grows) << text;
    EXPECT_EQ(has(text, "perhaps of memory/leak at train.py:6"), grows) << text;
    EXPECT_TRUE(!grows || text.find("piled up") < text.find("The smallest GPUs")) << text;
  }
}

}  // namespace
}  // namespace faultline
