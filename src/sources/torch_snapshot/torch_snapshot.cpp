#include "sources/torch_snapshot/torch_snapshot.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

#include "sources/torch_snapshot/json_reader.h"
#include "sources/torch_snapshot/keys.h"
#include "sources/torch_snapshot/object_machine.h"
#include "sources/torch_snapshot/overlaps.h"
#include "sources/torch_snapshot/pickle_reader.h"
#include "sources/torch_snapshot/trace_builder.h"

namespace faultline {
namespace {

// An entry takes at least this many bytes in any form, so this bounds what is reserved. Untouched reserve costs address space only, and
// events then never move while a large file is read.
constexpr std::uint64_t kLeastEntryBytes = 40;

// Logs begin with a bracket or a brace too: "[rank0]: Traceback", "[2024-05-01 03:00] epoch 3", {"loss": 2.3}. A snapshot names one of its keys soon.
bool begins_json(std::span<const std::uint8_t> head) {
  const auto is_space = [](std::uint8_t c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; };
  const auto first = std::find_if_not(head.begin(), head.end(), is_space);
  if (first == head.end() || (*first != '{' && *first != '[')) return false;
  const auto second = std::find_if_not(first + 1, head.end(), is_space);
  if (second == head.end()) return true;
  constexpr std::string_view kAfterBrace = "\"}", kAfterBracket = "{[]\"0123456789";
  if ((*first == '{' ? kAfterBrace : kAfterBracket).find(static_cast<char>(*second)) == std::string_view::npos)
    return false;
  const std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
  if (std::isdigit(*second) != 0) {  // [1, 2] and not [1/100] or [12:30:00]
    const std::size_t after = text.find_first_not_of("0123456789.", static_cast<std::size_t>(second - head.begin()));
    // mpirun marks its lines with "[1,0]<stderr>:"
    const std::size_t close = text.find("]", after);
    const bool is_mark = close != std::string_view::npos && text.substr(close + 1, 1) == "<";
    return after == std::string_view::npos || (text[after] == ',' && !is_mark) ||
           (text[after] == ']' && text.find_first_not_of(" \r\n\t", after + 1) == std::string_view::npos);
  }
  // Any other JSON, and a log that begins with some of it, is a text.
  constexpr std::array<std::string_view, 9> kOwnKeys = {"segments",     "device_traces", "blocks",
                                                        "frames",       "addr",          "action",
                                                        "segment_type", "total_size",    "allocated_size"};
  const bool names_key = std::any_of(kOwnKeys.begin(), kOwnKeys.end(), [&](std::string_view key) {
    return text.find('"' + std::string(key) + '"') != std::string_view::npos;
  });
  const bool has_words = std::any_of(text.begin(), text.end(), [](char letter) {
    return std::isalpha(static_cast<unsigned char>(letter)) != 0;
  });  // else it is no log either
  if (!names_key && has_words &&
      (text.size() >= 512 || text.find("rror") != std::string_view::npos ||
       text.find("out of memory") != std::string_view::npos))
    return false;
  if (text.find("Traceback (most recent call last)") != std::string_view::npos) return false;
  const std::size_t line = text.find('\n', static_cast<std::size_t>(first - head.begin()));
  const bool is_line_of_log = line != std::string_view::npos && text[line - 1] == '}' && line + 1 < text.size() &&
                              (text[line + 1] == '{' || std::isalpha(static_cast<unsigned char>(text[line + 1])) != 0);
  if (!is_line_of_log) return true;
  return std::any_of(torch_snapshot::kKeyNames.begin() + 1, torch_snapshot::kKeyNames.end(),
                     [&](std::string_view key) { return text.find('"' + std::string(key) + '"') < line; });
}

}  // namespace

bool looks_like_torch_snapshot(std::span<const std::uint8_t> head) {
  return torch_snapshot::looks_like_pickle(head) || begins_json(head);
}

Result<Trace> read_torch_snapshot(ByteStream& stream, const std::string&) {
  Trace trace;
  trace.source_kind = "torch-snapshot";
  if (stream.plain_size())
    trace.events.reserve(std::min<std::uint64_t>(*stream.plain_size() / kLeastEntryBytes + 16, std::uint64_t{1} << 28));
  {
    torch_snapshot::ObjectMachine machine(trace);
    machine.reserve(trace.events.capacity() * 2);
    const bool pickle = torch_snapshot::looks_like_pickle({stream.begin(), stream.end()});
    if (Status read = pickle ? read_pickle(stream, machine) : read_json(stream, machine); !read) return read.error();
    if (Status built = torch_snapshot::TraceBuilder(trace, machine).build(machine.top()); !built) return built.error();
  }
  trace.count("blocks placed over others in use", torch_snapshot::overlapping_blocks(trace));
  return trace;
}

}  // namespace faultline
