#include "sources/trace_file/trace_file.h"

#include "trace/file_reader.h"
#include "trace/text.h"

namespace faultline {
namespace {

constexpr std::size_t kMostTextBytes = std::size_t{1} << 30;
constexpr std::size_t kMostPackedBytes = std::size_t{8} << 30;

std::string_view as_text(std::span<const std::uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

Result<Trace> read_trace_file_source(ByteStream& stream, const std::string& path) {
  if (stream.plain_size() && path != "-" && !path.empty()) return read_trace_file(path);  // mapped, not copied
  Result<std::string> bytes = stream.read_all(kMostPackedBytes);
  if (!bytes) return bytes.error();
  return read_trace_bytes({reinterpret_cast<const std::uint8_t*>(bytes->data()), bytes->size()});
}

bool recognises_trace_text(std::span<const std::uint8_t> head) { return looks_like_trace_text(as_text(head)); }

Result<Trace> read_trace_text_source(ByteStream& stream, const std::string&) {
  Result<std::string> text = stream.read_all(kMostTextBytes);
  if (!text) return text.error();
  return parse_trace_text(*text);
}

}  // namespace faultline
