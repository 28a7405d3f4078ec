#include <array>
#include <new>

#include "sources/source.h"
#include "sources/torch_snapshot/torch_snapshot.h"

namespace faultline {
namespace {

constexpr std::array<Source, 1> kSources = {{
    {"torch-snapshot", "a PyTorch memory snapshot (pickle or JSON)", looks_like_torch_snapshot, read_torch_snapshot},
}};

}  // namespace

std::span<const Source> all_sources() { return kSources; }

Result<Trace> load(const std::string& path) {
  Result<ByteStream> stream = ByteStream::open(path);
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
      Result<Trace> trace = source.read(stream);
      if (trace) trace->source_path = path;
      return trace;
    } catch (const std::bad_alloc&) {
      return Error{"there is not enough memory to read it", {}, {}};
    }
  }
  return Error{"this is no input that Faultline knows", {}, "It reads PyTorch memory snapshots, Faultline traces, and text with a GPU error message in it."};
}

}  // namespace faultline
