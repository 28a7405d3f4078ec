#include "report/exit_status.h"

#include <gtest/gtest.h>

namespace faultline {
namespace {

Report with(std::initializer_list<Severity> severities) {
  Report report;
  for (const Severity severity : severities) report.findings.emplace_back().severity = severity;
  return report;
}

TEST(ExitStatus, NotesNeverChangeIt) {
  EXPECT_EQ(exit_status(with({})), 0);
  EXPECT_EQ(exit_status(with({Severity::kNote, Severity::kNote})), 0);
}

TEST(ExitStatus, AVerdictThatHoldsInPartIsNoPlainFit) {
  Report report;
  Plan& plan = report.plan.emplace();
  plan.verdict = Verdict::kFits;
  plan.gpu = PlanGpu{};
  EXPECT_EQ(exit_status(report), 0);
  plan.notes = {{NoteKind::kValue, "a number was read", "train.py:3", 1, ""},
                {NoteKind::kInstead, "b", "", 1, "run eagerly"}};
  EXPECT_EQ(exit_status(report), 0);
  plan.notes.front().verdict = "with sizes from a number that is not computed (train.py:3)";
  EXPECT_EQ(exit_status(report), kHoldsInPart);
  plan.notes.clear();
  plan.need.filling = PlanFilling{"train.py:2", 2, 1};
  EXPECT_EQ(exit_status(report), 0);
  plan.gpu.reset();
  plan.verdict = Verdict::kMeasured;
  EXPECT_EQ(exit_status(report), kHoldsInPart);
}

TEST(ExitStatus, OneErrorOrWarningIsEnough) {
  EXPECT_EQ(exit_status(with({Severity::kWarning})), 1);
  EXPECT_EQ(exit_status(with({Severity::kNote, Severity::kError})), 1);
}

}  // namespace
}  // namespace faultline
