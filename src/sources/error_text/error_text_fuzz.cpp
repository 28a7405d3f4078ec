// Any text is read in bounded time or refused.
#include "base/result.h"
#include "sources/error_text/error_text.h"
#include "sources/statements.h"
#include "trace/validate.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace faultline;
  const auto trace = read_error_text(std::string_view(reinterpret_cast<const char*>(bytes), size), "fuzz");
  if (!trace) return 0;
  FAULTLINE_CHECK(!trace->events.empty() && read_statements(*trace).error.group() != ErrorKind::kNone);
  FAULTLINE_CHECK(check_trace(*trace).ok());
  return 0;
}
