#include <algorithm>
#include <array>
#include <new>

#include "sources/bounds.h"
#include "sources/core_dump/core_dump.h"
#include "sources/error_text/error_text.h"
#include "sources/source.h"
#include "sources/torch_snapshot/torch_snapshot.h"
#include "sources/trace_file/trace_file.h"

namespace faultline {
namespace {

constexpr std::size_t kMostLogBytes = std::size_t{4} << 30;
constexpr std::size_t kMostStreamedBytes = std::size_t{1} << 30;  // of what does not say its size beforehand
constexpr const char* kKnownInputs = "It reads PyTorch memory snapshots, GPU core dumps, Faultline traces, and text with a GPU error message in it.";

// Any text may be a log with an error message in it.
bool recognises_text(std::span<const std::uint8_t> head) { return !head.empty(); }

Result<Trace> read_text(ByteStream& stream, const std::string& path) {
  // A NUL is in no log; a program or an archive may still hold a sentence that looks like an error.
  const std::size_t looked_at = std::min<std::size_t>(4096, static_cast<std::size_t>(stream.end() - stream.begin()));
  if (std::find(stream.begin(), stream.begin() + looked_at, std::uint8_t{0}) != stream.begin() + looked_at) {
    return Error{"this is no input that Faultline knows", {}, kKnownInputs};
  }
  Result<std::string> text = stream.read_all(stream.plain_size() ? kMostLogBytes : kMostStreamedBytes);
  if (!text) {
    Error error = text.error();
    if (error.next.empty()) error.next = "Cut it down to the part around the error, for example with tail.";
    return error;
  }
  return read_error_text(*text, path);
}

constexpr std::array<Source, 5> kSources = {{
    {"trace", "a Faultline trace", recognises_trace_file, read_trace_file_source},
    {"trace-text", "a Faultline trace as text", recognises_trace_text, read_trace_text_source},
    {"core-dump", "a GPU core dump", looks_like_core_dump, read_core_dump},
    {"torch-snapshot", "a PyTorch memory snapshot (pickle or JSON)", looks_like_torch_snapshot, read_torch_snapshot},
    {"error-text", "text with a GPU error message in it", recognises_text, read_text},
}};

}  // namespace

std::span<const Source> all_sources() { return kSources; }

Result<Trace> load(const std::string& path, NamedBy named_by) {
  Result<ByteStream> stream = ByteStream::open(path, named_by);
  if (!stream) return stream.error();
  return load(*stream, path);
}

Result<Trace> load(ByteStream& stream, const std::string& path) {
  // Let the window hold enough to recognise the input by.
  if (Result<const std::uint8_t*> head = stream.more(stream.begin(), 4096); !head) return head.error();
  const std::span<const std::uint8_t> head(stream.begin(), stream.end());
  if (head.empty()) return Error{"the file is empty", {}, {}};
  for (const Source& source : kSources) {
    if (!source.recognises(head)) continue;
    try {
      Result<Trace> trace = source.read(stream, path);
      if (trace) trace->source_path = path;
      if (trace) keep_in_bounds(*trace);
      return trace;
    } catch (const std::bad_alloc&) {
      return Error{"there is not enough memory to read it", {}, {}};
    }
  }
  return Error{"this is no input that Faultline knows", {}, kKnownInputs};
}

}  // namespace faultline
