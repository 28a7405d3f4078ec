// An input: what a path opens into, and the one door through which anything from outside comes in.
//
// open_input() takes a file, a folder, or "-" for standard input, asks the registry (source.h) which source knows it, and brings what the source found into
// the form that everything behind sees: traces within bounds, with readable native frames, and what the input says beside them. Nobody behind it looks at a
// file's name or at a source's.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/byte_stream.h"
#include "base/result.h"
#include "sources/statements.h"
#include "trace/trace.h"

namespace faultline {

// One process of a run, or one file of a folder.
struct InputPart {
  Trace trace;
  std::string name;       // "process 4711", "oom.log": which of several
  Statements statements;  // what it says beside its events
  bool holds(EventKind kind) const {
    return std::any_of(trace.events.begin(), trace.events.end(),
                       [=](const Event& event) { return event.kind == kind; });
  }
};

struct Input {
  Input() = default;
  explicit Input(Trace trace);  // a single one

  std::string kind;  // of the source: "torch-snapshot", "run"
  std::string path;
  std::vector<InputPart> parts;               // never empty; of a run what failed first comes first
  std::vector<std::string> notes;             // what the recorded processes had to say, in sentences
  std::vector<std::string> left_out;          // what was asked for and could not be recorded, likewise
  std::map<std::string, std::uint64_t> lost;  // what was odd or missing beside the parts
  std::string plan;                           // JSON: what a plan found out by running the program; empty: this is none
  std::string report;  // JSON: a report that was written before, with one part that holds nothing; empty: this is none
};

// The Error is one sentence for the user, the path not included.
Result<Input> open_input(const std::string& path, NamedBy named_by = NamedBy::kUser);
Result<Input> open_input(ByteStream& stream, const std::string& path);

// The trace of an input that has one; of several the first.
Result<Trace> load(const std::string& path, NamedBy named_by = NamedBy::kUser);
Result<Trace> load(ByteStream& stream, const std::string& path);

// A message about the same failure tells what a recording beside it cannot: the size of the device and the program's limit.
void share_device_sizes(std::vector<Input>& inputs);

}  // namespace faultline
