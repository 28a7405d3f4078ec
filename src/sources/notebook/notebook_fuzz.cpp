// Any bytes are a notebook with an error in it, or refused.
#include "base/result.h"
#include "sources/notebook/notebook.h"
#include "trace/validate.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace faultline;
  ByteStream stream = ByteStream::from_memory({bytes, size});
  (void)looks_like_notebook({bytes, size});
  const auto trace = read_notebook(stream, "fuzz");
  if (trace) FAULTLINE_CHECK(check_trace(*trace).ok());
  return 0;
}
