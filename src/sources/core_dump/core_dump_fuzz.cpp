// Any bytes are a trace that holds, or are refused.
#include "base/result.h"
#include "sources/core_dump/core_dump.h"
#include "trace/validate.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace faultline;
  const Result<Trace> trace = read_core_dump(std::span(bytes, size));
  if (!trace) return 0;
  for (const Event& event : trace->events)
    FAULTLINE_CHECK(event.kind == EventKind::kFault && event.extra < trace->faults.size());
  FAULTLINE_CHECK(check_trace(*trace).ok());
  return 0;
}
