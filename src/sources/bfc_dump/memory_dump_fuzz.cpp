// Any bytes are a trace that holds, or are refused.
#include "base/byte_stream.h"
#include "sources/bfc_dump/memory_dump.h"
#include "trace/validate.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace faultline;
  (void)looks_like_memory_dump({bytes, size});
  ByteStream stream = ByteStream::from_memory({bytes, size});
  const Result<Trace> trace = read_memory_dump(stream, "");
  if (trace) FAULTLINE_CHECK(check_trace(*trace).ok());
  return 0;
}
