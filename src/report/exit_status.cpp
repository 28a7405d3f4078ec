#include "report/exit_status.h"

#include <algorithm>

#include "plan/limits.h"

namespace faultline {

int exit_status(const Report& report) {
  const auto counts = [](const Finding& finding) { return finding.severity != Severity::kNote; };
  if (std::any_of(report.findings.begin(), report.findings.end(), counts)) return 1;
  const Verdict verdict = report.plan ? report.plan->verdict : Verdict::kFits;
  if (verdict == Verdict::kUnplanned || verdict == Verdict::kProgramError || verdict == Verdict::kInterrupted) return 2;
  if (verdict == Verdict::kDoesNotFit || verdict == Verdict::kFitsUntil) return 1;
  if (report.plan && has_unjudged_limit(*report.plan)) return 2;
  return report.plan && (report.plan->holds_in_part() || report.plan->is_undecided()) ? kHoldsInPart : 0;
}

}  // namespace faultline
