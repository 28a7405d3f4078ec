// Whatever the text, the reader refuses it or gives a trace that holds its invariants and survives being written and read again.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "trace/text.h"
#include "trace/validate.h"

using namespace faultline;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  const Result<Trace> trace = parse_trace_text("faultline-trace-text 1\n" + std::string(body));
  if (!trace) return 0;
  FAULTLINE_CHECK(check_trace(*trace).ok());
  const std::string text = trace_to_text(*trace);
  const Result<Trace> again = parse_trace_text(text);
  FAULTLINE_CHECK(again.ok());
  FAULTLINE_CHECK(again->events == trace->events);
  FAULTLINE_CHECK(trace_to_text(*again) == text);
  return 0;
}
