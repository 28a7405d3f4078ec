#include "report/exit_status.h"

#include <algorithm>

namespace faultline {

int exit_status(const Report& report) {
  const auto counts = [](const Finding& finding) { return finding.severity != Severity::kNote; };
  if (std::any_of(report.findings.begin(), report.findings.end(), counts)) return 1;
  if (!report.plan) return 0;
  switch (report.plan->verdict) {
    case Verdict::kFits:
    case Verdict::kTight:
    case Verdict::kMeasured:
      return 0;
    case Verdict::kDoesNotFit:
      return 1;
    case Verdict::kProgramError:
    case Verdict::kInterrupted:
      return 2;
  }
  return 0;
}

}  // namespace faultline
