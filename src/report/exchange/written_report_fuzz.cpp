// Whatever a written report says, it is shown in every form: annotations on their lines, documents that their own readers take.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/result.h"
#include "report/exchange/exchange.h"
#include "report/json.h"
#include "report/terminal.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace faultline;
  const std::optional<Report> report = report_of({reinterpret_cast<const char*>(bytes), size});
  if (!report) return 0;
  const std::span<const Report> reports(&*report, 1);
  const ExchangeOptions options{"/home/user", "0"};
  FAULTLINE_CHECK(!to_terminal(*report, {}).empty());
  FAULTLINE_CHECK(report_of(to_json(*report)).has_value());
  FAULTLINE_CHECK(nlohmann::json::accept(to_sarif(reports, options)));
  FAULTLINE_CHECK(to_markdown(reports, options).starts_with("### Faultline: "));
  FAULTLINE_CHECK(to_junit(reports, options).ends_with("</testsuites>\n"));
  const std::string github = to_github(reports, options);
  const auto lines = static_cast<std::size_t>(std::count(github.begin(), github.end(), '\n'));
  FAULTLINE_CHECK(lines <= report->findings.size() + 1);
  return 0;
}
