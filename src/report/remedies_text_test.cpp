#include "report/remedies_text.h"

#include <gtest/gtest.h>

#include "base/units.h"
#include "report/assemble.h"
#include "report/report.h"
#include "report/sample_reports.h"
#include "report/terminal.h"

namespace faultline {
namespace {

Plan plan_with_changes() {
  Plan plan;
  plan.verdict = Verdict::kDoesNotFit;
  plan.command = {"python", "train.py"};
  plan.gpu = PlanGpu{"Tesla T4", 10 * kGiB, "measured", kGiB, "measured"};
  plan.need.bytes = 12 * kGiB;
  plan.run.steps = 3;
  plan.run.how = "fake";
  PlanChange change;
  change.kind = ChangeKind::kProgram;
  change.what = "Use checkpointing";
  change.fits = true;
  change.needed_bytes = 9 * kGiB;
  plan.tried.changes = {change};
  plan.tried.vary.emplace();
  plan.tried.vary->name = "batch_size";
  plan.tried.vary->where = "train.py:4";
  plan.tried.vary->current = 8;
  plan.tried.vary->largest_fitting = 5;
  plan.tried.vary->smallest_failing = 6;
  plan.tried.vary->runs = 4;
  return plan;
}

// A diff is to be applied: no line of it is cut or wrapped, however narrow the terminal is.
TEST(RemediesText, ALineOfADiffIsWhole) {
  const std::string line = "+model = peft.get_peft_model(model, peft.LoraConfig(r=16, target_modules=\"all-linear\", " +
                           std::string(150, 'x') + "))";
  Report report;
  report.plan = plan_with_changes();
  report.plan->tried.changes[0].diff = "--- a/train.py\n+++ b/train.py\n@@ -1,0 +2,1 @@\n" + line + "\n";
  for (const int width : {40, 80}) {
    for (const bool verbose : {true, false}) {
      TerminalOptions options;
      options.width = width;
      options.verbose = verbose;
      const std::string text = to_terminal(report, options);
      EXPECT_NE(text.find("        " + line + "\n"), std::string::npos) << text;
    }
  }
}

// Of a program to which no change was made: why, and what to do, is the fix of the short page.
TEST(RemediesText, WhyNothingWasTriedIsTheFix) {
  Report report;
  report.plan = plan_with_changes();
  report.plan->tried.vary.reset();
  report.plan->tried.changes[0].fits = false;
  TerminalOptions options;
  options.width = 100;
  options.brief = true;
  EXPECT_NE(to_terminal(report, options).find("fix         One change was tried"), std::string::npos);
  report.plan->tried.skipped = "Use torch.cdist(a, b).";
  const std::string text = to_terminal(report, options);
  EXPECT_NE(text.find("fix         Use torch.cdist(a, b)."), std::string::npos) << text;
  EXPECT_EQ(text.find("was tried"), std::string::npos) << text;
}

// The short page has one way to make it fit; it tells of the longer one where that has another.
TEST(RemediesText, TheShortPageSaysThatThereAreMoreWays) {
  for (const bool fits : {true, false}) {
    Report report;
    report.plan = plan_with_changes();
    report.plan->tried.changes[0].fits = fits;
    TerminalOptions options;
    options.width = 100;
    options.brief = true;
    const std::string text = to_terminal(report, options);
    EXPECT_EQ(text.find("-v: what else would make it fit") != std::string::npos, fits) << text;
  }
}

// What was tried and ends the growth is a better answer than that there is a growth.
TEST(RemediesText, ATriedNoGradIsTheFixOfWhatPilesUp) {
  for (const char* remedy : {"no_grad", "autocast"}) {
    Report report = samples::out_of_memory();
    Finding& leak = report.findings.emplace_back();
    leak.rule = "memory/leak";
    leak.severity = Severity::kWarning;
    leak.location = {"/home/ada/llm/eval.py", 7, "evaluate", "", ""};
    leak.evidence = {{"full_at_step", 114}};
    Plan plan = plan_with_changes();
    plan.failure.happened = true;
    plan.tried.changes[0].remedies = {remedy};
    plan.tried.changes[0].cost = 10;
    attach_plan(report, std::move(plan));
    TerminalOptions options;
    options.width = 100;
    options.brief = true;
    const std::string text = to_terminal(report, options);
    const bool ends_it = std::string_view(remedy) == "no_grad";
    EXPECT_EQ(text.find("Use checkpointing") != std::string::npos, ends_it) << text;
    EXPECT_EQ(text.find("fix that first") == std::string::npos, ends_it) << text;
  }
}

TEST(RemediesText, WhatGrowsWithARemedyIsNotSaidToFit) {
  for (const std::uint64_t until : {0u, 894u}) {
    Report report;
    report.plan = plan_with_changes();
    Plan& plan = *report.plan;
    plan.tried.vary.reset();
    plan.tried.changes[0].fits = until == 0;
    plan.tried.changes[0].until = until;
    plan.tried.changes[0].until_unit = "step";
    plan.tried.where = {{PlanGpu{"H200", 140 * kGiB, "measured", kGiB, "measured"}, "", until}};
    TerminalOptions options;
    options.width = 200;
    const std::string text = to_terminal(report, options);
    EXPECT_EQ(text.find("✔ Use checkpointing") == std::string::npos, until != 0) << text;
    EXPECT_EQ(text.find("it fits until about step 894") != std::string::npos, until != 0) << text;
    EXPECT_EQ(text.find("H200 (until about step 894)") != std::string::npos, until != 0) << text;
    EXPECT_EQ(text.find("None of these is enough") != std::string::npos, until != 0) << text;
  }
}

// Beside what the loop needs to its end: until there it has room for all.
TEST(RemediesText, WhatMendsALoopThatWasCutShortIsTold) {
  for (const std::uint64_t until : {0u, 160u}) {
    Report report;
    report.plan = plan_with_changes();
    Plan& plan = *report.plan;
    plan.tried.vary.reset();
    plan.verdict = Verdict::kFitsUntil;
    plan.run.stopped = "in its loop over a DataLoader after 3 optimizer steps";
    plan.growth.unit = "round";
    plan.growth.until = 159;
    plan.growth.loop = {"train.py:20", 200, 0, 12};
    plan.need.bytes = 3 * kGiB;
    plan.growth.needed_at_end_bytes = 12 * kGiB;
    plan.tried.changes[0].needed_bytes = 2 * kGiB;
    plan.tried.changes[0].fits = until == 0;
    plan.tried.changes[0].until = until;
    plan.tried.changes[0].until_unit = "round";
    TerminalOptions options;
    options.width = 200;
    for (const bool brief : {false, true}) {
      options.brief = brief;
      const std::string text = to_terminal(report, options);
      EXPECT_EQ(
          text.find("Use checkpointing. In a dry run it fits: needs 2.00 GiB, 10.00 GiB less.") != std::string::npos,
          until == 0)
          << text;
      EXPECT_NE(text.find("FITS UNTIL ABOUT ROUND 159"), std::string::npos) << text;
    }
  }
}

TEST(RemediesText, BatchesThatAreAccumulatedAreSaidTruly) {
  for (const bool same : {true, false}) {
    Report report;
    report.plan = plan_with_changes();
    report.plan->tried.vary->batches = 2;
    report.plan->tried.vary->batch = same ? 4 : 5;
    TerminalOptions options;
    options.width = 200;
    const std::string text = to_terminal(report, options);
    const std::string to_do = same ? "Use batch_size = 4, with gradients accumulated: 2 batches of 4 make the same 8"
                                   : "Use batch_size = 5, with gradients accumulated: 2 batches of 5 make 10, not 8";
    EXPECT_NE(text.find(to_do), std::string::npos) << text;
    report.plan->tried.vary->without_edit = "the loop that accumulates";
    EXPECT_NE(to_terminal(report, options).find("Use batch_size = 5 (train.py:4, now 8): it fits and 6 does not"),
              std::string::npos)
        << to_terminal(report, options);
  }
}

TEST(RemediesText, WhatWasBegunWithoutAResultIsNamed) {
  for (const bool begun : {false, true}) {
    Report report;
    report.plan = plan_with_changes();
    report.plan->tried.changes.push_back({ChangeKind::kProgram, "Set X", "", false, false, 0, "it broke"});
    report.plan->tried.changes[1].label = "autocast in float16";
    report.plan->tried.changes[1].begun = begun;
    const std::string text = to_terminal(report, {});
    EXPECT_EQ(text.find("Begun without a result: autocast in float16: it broke.") != std::string::npos, begun) << text;
  }
}

TEST(RemediesText, ConfirmedChangesBecomeTriesOfTheFailure) {
  Report report = samples::out_of_memory();
  const std::size_t before = report.findings.front().tries.size();
  Plan plan = plan_with_changes();
  plan.failure.happened = true;
  plan.tried.changes.push_back({ChangeKind::kSetting, "Set X", "", false, false, 0, "it broke"});
  attach_plan(report, std::move(plan));
  const std::vector<Try>& tries = report.findings.front().tries;
  ASSERT_EQ(tries.size(), before + 2);  // the change that helped and the batch; not the one that was not tried
  EXPECT_EQ(tries[before].saves_bytes, 3 * kGiB);
  EXPECT_EQ(tries[before].confirmed, true);
  EXPECT_NE(tries[before + 1].what.find("batch_size = 5"), std::string::npos);
}

}  // namespace
}  // namespace faultline
