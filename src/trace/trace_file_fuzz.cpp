// Whatever the bytes, the file reader gives an error or a trace that holds its invariants and can be written and read again.
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "base/result.h"
#include "trace/file_format.h"
#include "trace/file_reader.h"
#include "trace/text.h"
#include "trace/validate.h"

using namespace faultline;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // A valid file header and a unit of the smallest size, so that the fuzzer spends its time behind them.
  TraceFileHeader header;
  header.unit_bytes = kLeastUnitBytes;
  std::vector<std::uint8_t> bytes(sizeof header + size);
  std::memcpy(bytes.data(), &header, sizeof header);
  if (size > 0) std::memcpy(bytes.data() + sizeof header, data, size);
  const Result<Trace> trace = read_trace_bytes(bytes);
  FAULTLINE_CHECK(trace.ok());
  FAULTLINE_CHECK(check_trace(*trace).ok());
  const Result<Trace> from_text = parse_trace_text(trace_to_text(*trace));
  FAULTLINE_CHECK(from_text.ok());
  FAULTLINE_CHECK(from_text->events == trace->events);
  (void)read_trace_bytes(std::span(data, size)).ok();
  return 0;
}
