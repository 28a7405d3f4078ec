// GitHub's workflow commands, which become annotations of lines.
#include <algorithm>

#include "base/safe_text.h"
#include "report/exchange/exchange.h"
#include "report/exit_status.h"
#include "report/finding_text.h"
#include "report/terminal.h"

namespace faultline {
namespace {

std::string command_text(std::string_view text, bool in_property) {
  std::string out;
  for (const char c : text) {
    if (c == '%')
      out += "%25";
    else if (c == '\n')
      out += "%0A";
    else if (c == '\r')
      out += "%0D";
    else if (c == ':' && in_property)
      out += "%3A";
    else if (c == ',' && in_property)
      out += "%2C";
    else
      out += c;
  }
  return out;
}

std::string_view command_of(Severity severity) {
  return severity == Severity::kError ? "error" : severity == Severity::kWarning ? "warning" : "notice";
}

}  // namespace

std::string to_github(std::span<const Report> reports, const ExchangeOptions& options) {
  std::string out;
  for (const Report& report : reports) {
    for (const FindingGroup& group : group_findings(report.findings)) {
      const Finding& finding = group.first();
      const Location& place = place_to_look(finding);
      out += "::" + std::string(command_of(finding.severity)) + " ";
      if (!place.file.empty()) {
        out += "file=" + command_text(shown(below(options.cwd, place.file)), true) + ",";
        if (place.line != 0) out += "line=" + std::to_string(place.line) + ",";
      }
      out += "title=" + command_text("Faultline: " + shown(finding.rule), true) +
             "::" + command_text(shown(finding.message) + advice(finding), false) + "\n";
    }
    const int status = exit_status(report);
    const bool is_told = status == 0 || std::any_of(report.findings.begin(), report.findings.end(),
                                                    [](const Finding& f) { return f.severity != Severity::kNote; });
    out += is_told ? "Faultline: "
                   : "::" + std::string(status == kHoldsInPart ? "warning" : "error") + " title=Faultline::";
    out += command_text(shown(summary_of(report)), false) + "\n";
  }
  return out;
}

}  // namespace faultline
