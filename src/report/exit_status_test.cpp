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

TEST(ExitStatus, OneErrorOrWarningIsEnough) {
  EXPECT_EQ(exit_status(with({Severity::kWarning})), 1);
  EXPECT_EQ(exit_status(with({Severity::kNote, Severity::kError})), 1);
}

}  // namespace
}  // namespace faultline
