// Sources of traces from files: one registry, one door.
//
// load() looks at the first bytes, picks the source that knows them, and returns its trace. A new kind of input is a folder here and one
// line in the registry (registry.cpp). Order matters there: the most certain signature comes first, plain text last.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/byte_stream.h"
#include "base/result.h"
#include "trace/trace.h"

namespace faultline {

struct Source {
  std::string_view kind;         // "torch-snapshot"
  std::string_view what;         // "a PyTorch memory snapshot (pickle or JSON)"
  bool (*recognises)(std::span<const std::uint8_t> head);
  Result<Trace> (*read)(ByteStream& stream, const std::string& path);
};

std::span<const Source> all_sources();

// The Error is one sentence for the user, the path not included.
Result<Trace> load(const std::string& path, NamedBy named_by = NamedBy::kUser);
Result<Trace> load(ByteStream& stream, const std::string& path);

}  // namespace faultline
