// Whatever the bytes, a snapshot is read or refused; what is read holds the trace's invariants and can be judged, reported and replayed.
#include <cstdint>

#include "base/result.h"
#include "models/replay.h"
#include "report/assemble.h"
#include "report/json.h"
#include "report/terminal.h"
#include "rules/judge.h"
#include "sources/torch_snapshot/torch_snapshot.h"
#include "trace/validate.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace faultline;
  ByteStream stream = ByteStream::from_memory({bytes, size});
  if (Result<const std::uint8_t*> head = stream.more(stream.begin(), 4096); !head) return 0;
  const Result<Trace> trace = read_torch_snapshot(stream, "fuzz");
  if (!trace) {
    FAULTLINE_CHECK(!trace.error().what.empty());
    return 0;
  }
  FAULTLINE_CHECK(check_trace(*trace).ok());
  const Judgement judgement = judge(*trace);
  const Report report = make_report(*trace, judgement);
  FAULTLINE_CHECK(!to_json(report).empty());
  FAULTLINE_CHECK(!to_terminal(report, {}).empty());
  ReplayOptions options;
  options.changes = {{"expandable_segments", "True"}};
  options.want_trace = true;
  options.segment_budget_bytes = std::uint64_t{1} << 30;
  options.device = trace->devices.front().index;
  if (const Result<ReplayResult> replayed = replay(*trace, options)) {
    FAULTLINE_CHECK(!replayed->trace || check_trace(*replayed->trace).ok());
  }
  return 0;
}
