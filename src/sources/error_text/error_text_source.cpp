// The pasted error as a source: any text may be a log with an error message in it.
#include "sources/error_text/error_text.h"
#include "sources/error_text/plain_text.h"

namespace faultline {
namespace {

constexpr std::size_t kMostLogBytes = std::size_t{4} << 30;
constexpr std::size_t kMostStreamedBytes = std::size_t{512} << 20;  // of what does not say its size beforehand

}  // namespace

bool recognises_error_text(std::span<const std::uint8_t> head) {
  return is_text({reinterpret_cast<const char*>(head.data()), head.size()});
}

Result<Trace> read_error_text(ByteStream& stream, const std::string& path) {
  Result<std::string> text = stream.read_all(stream.plain_size() ? kMostLogBytes : kMostStreamedBytes);
  if (!text) {
    Error error = text.error();
    if (error.next.empty()) error.next = "Cut it down to the part around the error, for example with tail.";
    return error;
  }
  return read_error_text(std::string_view(*text), path);
}

}  // namespace faultline
