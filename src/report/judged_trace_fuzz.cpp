// Whatever a trace says (operands, failed operations, notes, private pools, a dry run's properties), it can be judged, reported and replayed.
#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "models/replay.h"
#include "report/assemble.h"
#include "report/json.h"
#include "report/terminal.h"
#include "rules/judge.h"
#include "trace/text.h"
#include "trace/validate.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace faultline;
  const Result<Trace> trace = parse_trace_text(std::string_view(reinterpret_cast<const char*>(bytes), size));
  if (!trace) return 0;
  FAULTLINE_CHECK(check_trace(*trace).ok());
  const Judgement judgement = judge(*trace);
  const Report report = make_report(*trace, judgement);
  FAULTLINE_CHECK(!to_json(report).empty());
  FAULTLINE_CHECK(!to_terminal(report, {}).empty());
  if (trace->devices.empty()) return 0;
  ReplayOptions options;
  options.want_trace = true;
  options.segment_budget_bytes = std::uint64_t{1} << 30;
  options.device = trace->devices.front().index;
  if (const Result<ReplayResult> replayed = replay(*trace, options)) {
    FAULTLINE_CHECK(!replayed->trace || check_trace(*replayed->trace).ok());
  }
  return 0;
}
