// Any bytes are a trace that holds, or are refused.
#include "base/result.h"
#include "sources/bfc_log/bfc_log.h"
#include "trace/validate.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace faultline;
  ByteStream stream = ByteStream::from_memory({bytes, size});
  const Result<Trace> trace = read_bfc_log(stream, "fuzz");
  if (trace) FAULTLINE_CHECK(check_trace(*trace).ok());
  return 0;
}
