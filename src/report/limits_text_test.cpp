#include "report/limits_text.h"

#include <gtest/gtest.h>

#include "base/units.h"
#include "plan/limits.h"
#include "report/assemble.h"
#include "report/comparison.h"
#include "report/exit_status.h"
#include "report/json.h"
#include "report/terminal.h"

namespace faultline {
namespace {

// A plan for no named GPU that needs so much, all of it held by two lines.
Report planned(std::uint64_t needed_bytes, std::uint64_t first_line_bytes = kGiB, std::uint32_t line = 7) {
  Report report;
  DeviceReport& device = report.devices.emplace_back();
  device.holders = {{first_line_bytes, 3, "activations", {"/home/me/train.py", line, "step", "", ""}, ""},
                    {kGiB / 2, 1, "parameters", {"/home/me/model.py", 3, "build", "", ""}, ""}};
  device.peak_allocated = first_line_bytes + kGiB / 2;
  device.peak_reserved = device.peak_allocated;
  Plan& plan = report.plan.emplace();
  plan.verdict = Verdict::kMeasured;
  plan.command = {"python", "train.py"};
  plan.context_bytes = 640 * kMiB;
  plan.need.bytes = needed_bytes;
  plan.need.taken_bytes = needed_bytes;
  plan.versions = {"0.2.0", "PyTorch 2.13.0"};
  plan.run.how = "fake";
  return report;
}

Report with_budget(Report report, std::uint64_t bytes) {
  Plan plan = *report.plan;
  plan.limits.budget = judge_budget(plan, bytes);
  attach_plan(report, plan);
  return report;
}

Report compared(const Report& base, Report report, std::string_view allowed) {
  Plan plan = *report.plan;
  report.plan.reset();
  plan.limits.comparison = compare_with_base({*base.plan, base.input_path}, plan,
                                             grown_lines(base, report, plan.device), *parse_allowed_growth(allowed));
  attach_plan(report, plan);
  return report;
}

const Finding* found(const Report& report, std::string_view rule) {
  for (const Finding& finding : report.findings) {
    if (finding.rule == rule) return &finding;
  }
  return nullptr;
}

TEST(Limits, ABudgetIsBrokenByOneByteMoreAndKeptByItself) {
  const Report kept = with_budget(planned(2 * kGiB), 2 * kGiB);
  EXPECT_TRUE(kept.findings.empty());
  EXPECT_EQ(exit_status(kept), 0);
  const Report broken = with_budget(planned(2 * kGiB), 2 * kGiB - 1);
  const Finding* finding = found(broken, "memory/over-budget");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->bytes, 1u);
  EXPECT_EQ(finding->severity, Severity::kError);
  EXPECT_EQ(finding->location.line, 7u);
  EXPECT_EQ(finding->holders.size(), 2u);
  EXPECT_EQ(exit_status(broken), 1);
}

TEST(Limits, ThePageSaysHowMuchAndWhichLines) {
  const std::string text = to_terminal(with_budget(planned(3 * kGiB), 2 * kGiB), {});
  for (const char* part : {"NEEDS 3.00 GiB, 1.00 GiB over the budget", "2.00 GiB: it needs 3.00 GiB, 1.00 GiB too much",
                           "train.py:7", "model.py:3", "memory/over-budget"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  const std::string kept = to_terminal(with_budget(planned(3 * kGiB), 4 * kGiB), {});
  EXPECT_NE(kept.find("4.00 GiB: it needs 3.00 GiB, which leaves 1.00 GiB"), std::string::npos) << kept;
  EXPECT_EQ(kept.find("over-budget"), std::string::npos) << kept;
}

TEST(Limits, WhatWasNotPlannedToItsEndKeepsNoBudget) {
  for (const Verdict verdict : {Verdict::kUnplanned, Verdict::kProgramError, Verdict::kInterrupted}) {
    Report report = planned(kGiB);
    report.plan->verdict = verdict;
    const Report kept = with_budget(report, 2 * kGiB);
    EXPECT_FALSE(kept.plan->limits.budget->why_not.empty());
    EXPECT_EQ(exit_status(kept), 2);
    EXPECT_NE(to_terminal(kept, {}).find("not judged"), std::string::npos);
    const Report broken = with_budget(report, kGiB / 2);  // whatever comes after that
    ASSERT_NE(found(broken, "memory/over-budget"), nullptr);
    EXPECT_NE(found(broken, "memory/over-budget")->message.find("at least"), std::string::npos);
    EXPECT_EQ(exit_status(broken), 1);
  }
}

TEST(Limits, WhatEndedAtAnOutOfMemoryKeepsNoLimit) {
  Report report = planned(kGiB);
  report.plan->verdict = Verdict::kDoesNotFit;
  report.plan->need.is_least = true;
  const char* const why = "ran out of memory, and what it needs in all is not known";
  const Report within = with_budget(report, 2 * kGiB);
  EXPECT_NE(within.plan->limits.budget->why_not.find(why), std::string::npos);
  EXPECT_TRUE(has_unjudged_limit(*within.plan));
  EXPECT_NE(found(with_budget(report, kGiB / 2), "memory/over-budget"), nullptr);  // that much is sure
  const Report less = compared(planned(2 * kGiB), report, "5%");
  EXPECT_NE(less.plan->limits.comparison->why_not.find(why), std::string::npos);
  for (const auto& [label, text] : limit_rows(*less.plan)) EXPECT_EQ(text.find(" less"), std::string::npos) << text;
  EXPECT_NE(found(compared(planned(kGiB / 2), report, "5%"), "memory/grown"), nullptr);
  report.plan->need.is_least = false;
  EXPECT_FALSE(has_unjudged_limit(*with_budget(report, 2 * kGiB).plan));
  EXPECT_FALSE(has_unjudged_limit(*compared(planned(2 * kGiB), report, "5%").plan));
}

TEST(Limits, OfALineThatTheBaseDoesNotListOnlyWhatIsSureIsToldAsGrown) {
  Report base = planned(2 * kGiB);
  DeviceReport& device = base.devices[0];
  device.holders.push_back({600 * kMiB, 9, "the rest", {}, "3 other lines"});
  device.peak_allocated += 600 * kMiB + 4 * kKiB;  // of that 4 KiB are no row's
  Report now = planned(4 * kGiB);
  now.devices[0].holders.push_back({700 * kMiB, 1, "other", {"/home/me/new.py", 1, "f", "", ""}, ""});
  const Report grown = compared(base, now, "1%");
  const auto& lines = grown.plan->limits.comparison->lines;
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].before_bytes, kGiB / 2);  // the least row of the base
  EXPECT_EQ(lines[0].now_bytes, 700 * kMiB);
}

TEST(Limits, AProgramThatSizesItselfByAGpuThatWasNotNamedIsNotJudged) {
  Report report = planned(90 * kGiB);
  report.plan->need.filling = PlanFilling{"serve.py:3", kGiB, kGiB};
  const Report judged = with_budget(report, kGiB);
  EXPECT_TRUE(judged.findings.empty());
  EXPECT_EQ(exit_status(judged), 2);
}

TEST(Limits, ProcessesThatMayBreakItTogetherAreNotJudged) {
  Report report = planned(kGiB);
  report.plan->need.together_bytes = 3 * kGiB;
  EXPECT_EQ(exit_status(with_budget(report, 2 * kGiB)), 2);
  EXPECT_EQ(exit_status(with_budget(report, 3 * kGiB)), 0);
  EXPECT_EQ(exit_status(with_budget(report, kGiB / 2)), 1);
}

TEST(Limits, AStoppedPlanKeepsItAsFarAsItWasRun) {
  Report report = planned(kGiB);
  report.plan->run.stopped = "after 8 optimizer steps";
  const Report judged = with_budget(report, 2 * kGiB);
  EXPECT_EQ(exit_status(judged), kHoldsInPart);
  EXPECT_NE(to_terminal(judged, {}).find("as far as it was run"), std::string::npos);
}

TEST(Limits, WhatGrowsUntilItsLoopEndsIsHeldAgainstWhatItNeedsThen) {
  Report report = planned(kGiB);
  report.plan->growth.needed_at_end_bytes = 3 * kGiB;
  EXPECT_NE(found(with_budget(report, 2 * kGiB), "memory/over-budget"), nullptr);
}

TEST(Limits, OfSeveralGpusEachHasTheBudget) {
  Report report = planned(kGiB);
  report.plan->devices = {{0, kGiB, kGiB}, {1, 4 * kGiB, 4 * kGiB}};
  EXPECT_NE(found(with_budget(report, 2 * kGiB), "memory/over-budget"), nullptr);
  report.plan->devices[1].reserved_bytes = 0;
  EXPECT_EQ(found(with_budget(report, 2 * kGiB), "memory/over-budget"), nullptr);
}

TEST(Limits, GrowthIsToldByTheLineThatGrewAlsoWhereItMoved) {
  const Report base = planned(2 * kGiB);
  const Report grown = compared(base, planned(3 * kGiB, 2 * kGiB, 9), "1%");
  const Finding* finding = found(grown, "memory/grown");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->bytes, kGiB);
  EXPECT_EQ(finding->location.line, 9u);
  ASSERT_EQ(grown.plan->limits.comparison->lines.size(), 1u);  // the other line is as it was
  EXPECT_EQ(grown.plan->limits.comparison->lines[0].before_bytes, kGiB);
  EXPECT_EQ(grown.plan->limits.comparison->lines[0].now_bytes, 2 * kGiB);
  EXPECT_EQ(grown.plan->limits.comparison->lines[0].count, 3u);
  EXPECT_EQ(exit_status(grown), 1);
  EXPECT_EQ(exit_status(compared(base, planned(2 * kGiB), "0%")), 0);
  EXPECT_EQ(exit_status(compared(base, planned(kGiB, kGiB / 2), "0%")), 0);
}

TEST(Limits, AsMuchAsIsAllowedIsNoFinding) {
  const Report base = planned(1000 * kMiB);
  struct Case {
    const char* allowed;
    std::uint64_t most;
  };
  for (const auto& [allowed, most] : {Case{"1%", 1010 * kMiB}, Case{"0%", 1000 * kMiB}, Case{"200MiB", 1200 * kMiB},
                                      Case{"2.5%", 1025 * kMiB}, Case{"0", 1000 * kMiB}, Case{"100 %", 2000 * kMiB}}) {
    EXPECT_EQ(exit_status(compared(base, planned(most), allowed)), 0) << allowed;
    EXPECT_EQ(exit_status(compared(base, planned(most + 1), allowed)), 1) << allowed;
  }
  for (const char* bad : {"", "%", "-1%", "nan%", "inf%", "5%%", "much", "-200MiB", "1e9%"})
    EXPECT_FALSE(parse_allowed_growth(bad).ok()) << bad;
}

TEST(Limits, WhatElseIsOtherIsSaid) {
  Report base = planned(kGiB);
  base.plan->versions = {"0.0.9", "PyTorch 2.11.0"};
  base.plan->command = {"/usr/bin/python", "old.py"};
  base.plan->run.stopped = "after 2 optimizer steps";
  const Report grown = compared(base, planned(2 * kGiB), "1%");
  const std::string text = found(grown, "memory/grown")->memory;
  for (const char* part : {"PyTorch 2.11.0 then", "Faultline 0.0.9", "old.py", "2 optimizer steps"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  base = planned(kGiB);
  base.plan->command = {"/elsewhere/python", "train.py"};
  const Report same = compared(base, planned(2 * kGiB), "1%");
  EXPECT_EQ(found(same, "memory/grown")->memory.find("Not the program alone"), std::string::npos);
}

TEST(Limits, ABaseThatSaysNothingIsRefused) {
  const Gpu t4 = *find_gpu("T4"), l4 = *find_gpu("L4");
  const Report base = planned(kGiB);
  EXPECT_EQ(why_no_base(*base.plan, {}), "");
  EXPECT_NE(why_no_base(*base.plan, {t4}), "");
  Report of_t4 = base;
  of_t4.plan->gpu = plan_gpu(t4);
  EXPECT_EQ(why_no_base(*of_t4.plan, {t4}), "");
  EXPECT_EQ(why_no_base(*of_t4.plan, {l4, t4}), "");
  EXPECT_NE(why_no_base(*of_t4.plan, {l4}).find("Tesla T4"), std::string::npos);
  EXPECT_NE(why_no_base(*of_t4.plan, {}), "");
  for (const std::uint64_t bytes : {std::uint64_t{1}, kMiB, kGiB, kTiB}) {
    Gpu other_size = t4;
    other_size.capacity_bytes += bytes;
    const std::string why = why_no_base(*of_t4.plan, {other_size});
    const std::size_t then = why.find("Tesla T4 with "), now = why.rfind("Tesla T4 with ");
    ASSERT_NE(then, now) << why;
    EXPECT_NE(why.substr(then, why.find(',', why.find(" and ", then) - 2) - then),
              why.substr(now, why.find(": ") - now))
        << why;
  }
  Gpu other_context = t4;
  other_context.context_bytes += kMiB;
  EXPECT_NE(why_no_base(*of_t4.plan, {other_context}).find("--context"), std::string::npos);
  for (const Verdict verdict : {Verdict::kUnplanned, Verdict::kProgramError, Verdict::kInterrupted}) {
    Report other = base;
    other.plan->verdict = verdict;
    EXPECT_NE(why_no_base(*other.plan, {}), "");
  }
  EXPECT_NE(why_no_base(*report_of(R"({"schema": "faultline.report/1", "plan": {"verdict": "measured"}})")->plan, {}),
            "");
}

TEST(Limits, NumbersThatNobodyCanNeedDoNotOverflow) {
  Report base = planned(~std::uint64_t{0});
  EXPECT_EQ(exit_status(compared(base, planned(kGiB), "1000000%")), 0);
  EXPECT_EQ(exit_status(compared(planned(1), planned(~std::uint64_t{0}), "1%")), 1);
}

TEST(Limits, TheReportIsReadAgainAsItWasWritten) {
  const Report broken = compared(planned(2 * kGiB), with_budget(planned(3 * kGiB, 2 * kGiB), kGiB), "1%");
  const std::string json = to_json(broken);
  const std::optional<Report> again = report_of(json);
  ASSERT_TRUE(again);
  EXPECT_EQ(to_json(*again), json);
  EXPECT_EQ(exit_status(*again), 1);
}

}  // namespace
}  // namespace faultline
