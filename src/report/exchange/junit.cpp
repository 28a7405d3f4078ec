// JUnit's XML, which every server for continuous integration reads.
#include "base/safe_text.h"
#include "report/exchange/exchange.h"
#include "report/exit_status.h"
#include "report/finding_text.h"
#include "report/place.h"
#include "report/terminal.h"

namespace faultline {
namespace {

struct Cases {
  std::string text;
  std::size_t count = 0, failures = 0, errors = 0, skipped = 0;

  void add(std::string_view name, std::string_view kind, std::string_view type, std::string_view message,
           std::string_view body) {
    ++count;
    text += "    <testcase classname=\"faultline\" name=\"" + escaped_markup(shown(name)) + "\">";
    if (!kind.empty()) {
      text += "<" + std::string(kind) + (type.empty() ? "" : " type=\"" + escaped_markup(shown(type)) + "\"") +
              " message=\"" + escaped_markup(shown(message)) + "\">" + escaped_markup(body) + "</" + std::string(kind) +
              ">";
    }
    text += "</testcase>\n";
  }
};

Cases cases_of(const Report& report, const PathStyle& paths) {
  Cases cases;
  for (const FindingGroup& group : group_findings(report.findings)) {
    const Finding& finding = group.first();
    const std::string place = describe_place(place_to_look(finding), paths, 200);
    const std::string name = finding.rule + (place.empty() ? "" : " at " + place);
    const bool fails = finding.severity != Severity::kNote;
    if (fails) ++cases.failures;
    cases.add(name, fails ? "failure" : "", name_of(finding.severity), finding.message,
              shown(finding.message) + advice(finding));
  }
  for (const std::string& sentence : report.unseen) {
    ++cases.errors;
    cases.add("what was seen", "error", "unseen", sentence, "");
  }
  for (const NotJudged& item : report.not_judged) {
    if (item.always) continue;
    ++cases.skipped;
    cases.add(item.rule, "skipped", "", item.why, "");
  }
  // A status that no finding stands for, and a report without any: the verdict is a case of its own.
  const int status = exit_status(report);
  const bool untold = status != 0 && cases.failures + cases.errors == 0;
  if (untold) ++cases.errors;
  if (untold || cases.count == cases.skipped)
    cases.add("verdict", untold ? "error" : "", "verdict", summary_of(report), "");
  return cases;
}

}  // namespace

std::string to_junit(std::span<const Report> reports, const ExchangeOptions& options) {
  const PathStyle paths{options.cwd, "", true};
  std::string suites;
  Cases all;
  for (const Report& report : reports) {
    const Cases cases = cases_of(report, paths);
    const auto number = [](const char* name, std::size_t value) {
      return std::string(" ") + name + "=\"" + std::to_string(value) + "\"";
    };
    suites += "  <testsuite name=\"" +
              escaped_markup(shown("faultline " + std::string(below(options.cwd, report.input_path)))) + "\"" +
              number("tests", cases.count) + number("failures", cases.failures) + number("errors", cases.errors) +
              number("skipped", cases.skipped) + ">\n" + cases.text + "  </testsuite>\n";
    all.count += cases.count, all.failures += cases.failures, all.errors += cases.errors;
  }
  return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"faultline\" tests=\"" +
         std::to_string(all.count) + "\" failures=\"" + std::to_string(all.failures) + "\" errors=\"" +
         std::to_string(all.errors) + "\">\n" + suites + "</testsuites>\n";
}

}  // namespace faultline
