#include "plan/leaks.h"

#include <gtest/gtest.h>

#include "base/units.h"

namespace faultline {
namespace {

// Trained for 40 steps on a GPU of 8 GiB, of which it needs 2, and kept so much of each.
Plan ended() {
  Plan plan;
  plan.verdict = Verdict::kFits;
  plan.gpu = PlanGpu{"Small GPU", 8 * kGiB, "measured", kGiB, "measured"};
  plan.context_bytes = kGiB;
  plan.need.bytes = 2 * kGiB;
  plan.run.steps = 40;
  return plan;
}

Finding leak(Confidence confidence, std::uint64_t bytes_per_step, std::uint64_t steps = 40) {
  Finding finding;
  finding.rule = "memory/leak";
  finding.severity = Severity::kError;
  finding.confidence = confidence;
  finding.message = "Memory grows.";
  finding.bytes = bytes_per_step * steps;
  finding.evidence = {{"bytes_per_step", static_cast<std::int64_t>(bytes_per_step)},
                      {"steps", static_cast<std::int64_t>(steps)}};
  return finding;
}

Finding weighed(const Plan& plan, Finding finding) {
  std::vector<Finding> findings = {std::move(finding)};
  weigh_leaks(plan, findings);
  return findings.front();
}

TEST(WeighLeaks, WhatIsLikelyAndSmallIsANoteWhereTheProgramRanToItsEnd) {
  EXPECT_EQ(weighed(ended(), leak(Confidence::kLikely, kMiB)).severity, Severity::kNote);
  EXPECT_EQ(weighed(ended(), leak(Confidence::kLikely, 50 * kMiB)).severity, Severity::kError);
  Plan stopped = ended();
  stopped.run.stopped = "after 30 seconds";
  EXPECT_EQ(weighed(stopped, leak(Confidence::kLikely, kMiB)).severity, Severity::kError);
}

TEST(WeighLeaks, WhatIsProvedIsAWarningThatSaysWhenTheGpuIsFull) {
  const Finding small = weighed(ended(), leak(Confidence::kProved, 6 * kMiB));
  EXPECT_EQ(small.severity, Severity::kWarning);
  // 6 GiB are left: 1,024 steps more
  EXPECT_NE(small.message.find("Small GPU would be full at about step 1,064."), std::string::npos) << small.message;
  Plan pool = ended();
  pool.pool.share = 0.75;
  EXPECT_NE(weighed(pool, leak(Confidence::kProved, 6 * kMiB)).message.find("about step 808."), std::string::npos);
}

TEST(WeighLeaks, ALineThatIsReachedSeveralTimesInAStepCountsSoOften) {
  const Finding twice = weighed(ended(), leak(Confidence::kProved, 3 * kMiB, 80));
  EXPECT_NE(twice.message.find("at about step 1,064."), std::string::npos) << twice.message;
}

TEST(WeighLeaks, ALoopThatEndsBeforeIsSaidAndIsNoPardonForWhatIsProved) {
  Plan plan = ended();
  plan.run.stopped = "after 40 optimizer steps";
  plan.growth.until = 1064;
  plan.growth.needed_at_end_bytes = 3 * kGiB;
  plan.growth.loop = {"train.py:12", 200, 200, 0};
  const Finding proved = weighed(plan, leak(Confidence::kProved, 6 * kMiB));
  EXPECT_EQ(proved.severity, Severity::kWarning);
  EXPECT_NE(proved.message.find("own loop (train.py:12, 200 rounds) ends before"), std::string::npos);
  EXPECT_NE(proved.message.find("full at about step 1,064."), std::string::npos) << proved.message;
  EXPECT_EQ(weighed(plan, leak(Confidence::kLikely, 6 * kMiB)).severity, Severity::kNote);
}

TEST(WeighLeaks, WithoutAGpuTheSmallestThatHaveRoomAreTold) {
  Plan plan = ended();
  plan.gpu.reset();
  plan.verdict = Verdict::kMeasured;
  const auto fit = [](const char* name, std::uint64_t gib, bool fits) {
    return PlanFit{PlanGpu{name, gib * kGiB, "measured", kGiB, "measured"}, fits};
  };
  plan.fits = {fit("A", 1, false), fit("B", 4, true),  fit("C", 4, true),
               fit("D", 8, true),  fit("E", 16, true), fit("F", 80, true)};
  const Finding proved = weighed(plan, leak(Confidence::kProved, 8 * kMiB));
  EXPECT_EQ(proved.severity, Severity::kWarning);
  EXPECT_NE(proved.message.find("B (4.00 GiB) would be full at about step 296, D (8.00 GiB) at about 808, E (16.00 "
                                "GiB) at about 1,832."),
            std::string::npos)
      << proved.message;
}

TEST(WeighLeaks, WhatHasALimitIsLeftAsItWasJudged) {
  Finding limited = leak(Confidence::kLikely, kMiB);
  limited.severity = Severity::kNote;
  limited.evidence.push_back({"limit_bytes", std::int64_t{1} << 30});
  const Finding told = weighed(ended(), limited);
  EXPECT_EQ(told.severity, Severity::kNote);
  EXPECT_EQ(told.message, "Memory grows.");
}

}  // namespace
}  // namespace faultline
