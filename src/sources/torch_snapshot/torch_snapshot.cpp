#include "sources/torch_snapshot/torch_snapshot.h"

#include <algorithm>

#include "sources/torch_snapshot/json_reader.h"
#include "sources/torch_snapshot/object_machine.h"
#include "sources/torch_snapshot/pickle_reader.h"
#include "sources/torch_snapshot/trace_builder.h"

namespace faultline {
namespace {

// An entry takes at least this many bytes in any form, so this bounds what is reserved. Untouched reserve costs address space only, and
// events then never move while a large file is read.
constexpr std::uint64_t kLeastEntryBytes = 40;

bool begins_json(std::span<const std::uint8_t> head) {
  const auto first = std::find_if(head.begin(), head.end(), [](std::uint8_t c) { return c != ' ' && c != '\n' && c != '\r' && c != '\t'; });
  return first != head.end() && (*first == '{' || *first == '[');
}

}  // namespace

bool looks_like_torch_snapshot(std::span<const std::uint8_t> head) { return torch_snapshot::looks_like_pickle(head) || begins_json(head); }

Result<Trace> read_torch_snapshot(ByteStream& stream, const std::string&) {
  Trace trace;
  trace.source_kind = "torch-snapshot";
  if (stream.plain_size()) trace.events.reserve(std::min<std::uint64_t>(*stream.plain_size() / kLeastEntryBytes + 16, std::uint64_t{1} << 28));
  {
    torch_snapshot::ObjectMachine machine(trace);
    machine.reserve(trace.events.capacity() * 2);
    const bool pickle = torch_snapshot::looks_like_pickle({stream.begin(), stream.end()});
    if (Status read = pickle ? read_pickle(stream, machine) : read_json(stream, machine); !read) return read.error();
    if (Status built = torch_snapshot::TraceBuilder(trace, machine).build(machine.top()); !built) return built.error();
  }
  return trace;
}

}  // namespace faultline
