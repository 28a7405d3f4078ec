// The pasted error as a source: any text may be a log with an error message in it.
#include <algorithm>

#include "sources/error_text/error_text.h"

namespace faultline {
namespace {

constexpr std::size_t kLookedAt = 4096;
constexpr std::size_t kMostLogBytes = std::size_t{4} << 30;
constexpr std::size_t kMostStreamedBytes = std::size_t{1} << 30;  // of what does not say its size beforehand

}  // namespace

// A NUL is in no log; a program or an archive may still hold a sentence that looks like an error.
bool recognises_error_text(std::span<const std::uint8_t> head) {
  const auto looked_at = head.first(std::min(head.size(), kLookedAt));
  return std::find(looked_at.begin(), looked_at.end(), std::uint8_t{0}) == looked_at.end();
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
