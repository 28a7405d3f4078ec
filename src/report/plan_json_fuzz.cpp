// Any text as a folder's report.json: it has a plan, which can be shown, or none.
#include "base/result.h"
#include "report/json.h"
#include "report/plan_json.h"
#include "report/terminal.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace faultline;
  const std::string text(reinterpret_cast<const char*>(bytes), size);
  for (const std::string& document : {text, "{\"plan\":" + text + "}"}) {
    std::optional<Plan> plan = plan_of_report(document);
    if (!plan) continue;
    Report report;
    report.plan = std::move(plan);
    FAULTLINE_CHECK(!to_terminal(report, {}).empty());
    FAULTLINE_CHECK(plan_of_report(to_json(report)).has_value());
  }
  return 0;
}
