// Any bytes as the module that native frames lie in: the trace holds afterwards, whatever the module says.
#include <sys/mman.h>
#include <unistd.h>

#include "base/result.h"
#include "sources/symbolise.h"
#include "trace/text.h"
#include "trace/validate.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace faultline;
  const int file = ::memfd_create("module", MFD_CLOEXEC);
  FAULTLINE_CHECK(file >= 0 && ::write(file, bytes, size) == static_cast<ssize_t>(size));
  const std::string path = "\"/proc/self/fd/" + std::to_string(file) + "\"";
  std::string text = "faultline-trace-text 1\n";
  for (int i = 0; i < 64; ++i) text += "alloc 512 at " + path + " \"+0x" + std::to_string(i * 37) + "\"\n";
  Result<Trace> trace = parse_trace_text(text);
  FAULTLINE_CHECK(trace.ok());
  symbolise(*trace);
  ::close(file);
  FAULTLINE_CHECK(check_trace(*trace).ok());
  return 0;
}
