#include "report/exit_status.h"

#include <algorithm>

namespace faultline {

int exit_status(const Report& report) {
  const auto counts = [](const Finding& finding) { return finding.severity != Severity::kNote; };
  return std::any_of(report.findings.begin(), report.findings.end(), counts) ? 1 : 0;
}

}  // namespace faultline
