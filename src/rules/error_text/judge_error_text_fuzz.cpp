// Whatever a text was read into can be judged, and its account adds up.
#include "base/result.h"
#include "rules/error_text/error_text.h"
#include "sources/error_text/error_text.h"
#include "trace/validate.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace faultline;
  const auto trace = read_error_text({reinterpret_cast<const char*>(bytes), size}, "fuzz");
  if (!trace) return 0;
  FAULTLINE_CHECK(trace->events.size() == 1 && check_trace(*trace).ok());
  std::vector<Finding> findings;
  std::vector<NotJudged> not_judged;
  judge_error_text(*trace, findings, not_judged);
  FAULTLINE_CHECK(findings.size() == 1 && !findings[0].message.empty());
  if (const auto account = error_account(*trace)) {
    FAULTLINE_CHECK(account->allocated + account->cached + account->outside_framework + account->other_processes + account->free + account->unknown ==
                    account->capacity);
  }
  return 0;
}
