// Any text as a folder's report.json: no report, or one that can be shown, and written so that it reads the same again.
#include "base/result.h"
#include "report/json.h"
#include "report/terminal.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace faultline;
  const std::string text(reinterpret_cast<const char*>(bytes), size);
  const std::string start = "{\"schema\":\"faultline.report/1\",";
  for (const std::string& document :
       {text, start + text, start + "\"plan\":" + text + "}", start + "\"findings\":[" + text + "]}"}) {
    const std::optional<Report> report = report_of(document);
    if (!report) continue;
    FAULTLINE_CHECK(!to_terminal(*report, {}).empty());
    const std::string written = to_json(*report);
    FAULTLINE_CHECK(report_of(written).has_value() && to_json(*report_of(written)) == written);
  }
  return 0;
}
