// Whatever a text was read into can be judged, and its account adds up.
#include <numeric>

#include "base/result.h"
#include "report/assemble.h"
#include "sources/error_text/error_text.h"
#include "trace/validate.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace faultline;
  const auto trace = read_error_text(std::string_view(reinterpret_cast<const char*>(bytes), size), "fuzz");
  if (!trace) return 0;
  FAULTLINE_CHECK(!trace->events.empty() && check_trace(*trace).ok());
  const Report report = make_report(*trace, judge(*trace));
  FAULTLINE_CHECK(!report.findings.empty() && !report.findings[0].message.empty());
  for (const DeviceReport& device : report.devices) {
    const Account& account = device.account;
    const auto add = [](std::uint64_t sum, const auto& part) { return sum + part.second; };
    FAULTLINE_CHECK(std::accumulate(account.live.begin(), account.live.end(),
                                    account.cached + account.outside_framework + account.free + account.unknown,
                                    add) == account.capacity);
  }
  return 0;
}
