// The pasted error as a source: any text may be a log with an error message in it.
#include "sources/error_text/error_text.h"
#include "sources/error_text/plain_text.h"

namespace faultline {

bool recognises_error_text(std::span<const std::uint8_t> head) {
  return is_text({reinterpret_cast<const char*>(head.data()), head.size()});
}

Result<Trace> read_error_text(ByteStream& stream, const std::string& path) {
  Result<LongText> text = read_long_text(stream);
  return text ? read_error_text(std::move(*text), path) : Result<Trace>(text.error());
}

}  // namespace faultline
