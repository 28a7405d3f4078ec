#include <gtest/gtest.h>

#include <sstream>

#include "base/units.h"
#include "report/report.h"
#include "report/terminal.h"

namespace faultline {
namespace {

Plan stopped_plan(std::uint64_t steps, const std::string& stopped) {
  Plan plan;
  plan.verdict = Verdict::kFits;
  plan.command = {"python", "train.py"};
  plan.gpu = PlanGpu{"Tesla T4", 14 * kGiB, "measured", kGiB, "measured"};
  plan.context_bytes = kGiB;
  plan.need.bytes = plan.need.taken_bytes = 3 * kGiB;
  plan.run.steps = steps;
  plan.run.stopped = stopped;
  plan.run.how = "fake";
  return plan;
}

std::string in_short(const Plan& plan) {
  Report report;
  report.plan = plan;
  TerminalOptions options;
  options.brief = true;
  std::istringstream words(to_terminal(report, options));
  std::string text;
  for (std::string word; words >> word;) text += (text.empty() ? "" : " ") + word;
  return text;  // however its lines are broken
}

bool says(const std::string& text, const std::string& words) { return text.find(words) != std::string::npos; }

TEST(PlanSentences, WhatWasNotSeenComesAfterSomethingThatIsNamed) {
  const std::string without_steps = in_short(stopped_plan(0, "after 25 seconds")),
                    with_steps = in_short(stopped_plan(8, "after 8 optimizer steps"));
  EXPECT_TRUE(says(without_steps, "The dry run stopped it after 25 seconds; what comes after that was not seen."))
      << without_steps;
  EXPECT_TRUE(says(with_steps, "What comes after 8 optimizer steps was not seen.")) << with_steps;
}

TEST(PlanSentences, WhatHasALimitIsToldAsFull) {
  Plan plan = stopped_plan(8, "after 8 optimizer steps");
  EXPECT_FALSE(says(in_short(plan), "Memory grows")) << in_short(plan);
  plan.growth.needed_at_end_bytes = 7 * kGiB;
  EXPECT_TRUE(
      says(in_short(plan), "Memory grows until what is kept is full. It then needs about 7.00 GiB of the 14.00"))
      << in_short(plan);
  plan.growth.unit = "step";
  EXPECT_TRUE(says(in_short(plan), "Memory grows with every optimizer step.")) << in_short(plan);
}

// The dry run's own signal is not somebody else's.
TEST(PlanSentences, WhoStoppedTheProgramIsSaid) {
  for (const char* stopped : {"", "after 145 seconds"}) {
    Plan plan = stopped_plan(0, stopped);
    plan.verdict = Verdict::kInterrupted;
    plan.run.exit_status = 128 + 15;
    const std::string text = in_short(plan);
    EXPECT_EQ(says(text, "the dry run stopped the program after 145 seconds"), !plan.run.stopped.empty()) << text;
    EXPECT_EQ(says(text, "by signal 15"), plan.run.stopped.empty()) << text;
  }
}

}  // namespace
}  // namespace faultline
