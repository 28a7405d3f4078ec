// Reads a trace file, while it grows or after, whole or cut anywhere.
//
// The bytes are hostile: nothing is believed, nothing is allocated that they do not pay for. The only errors are those of the first 64 bytes
// (not a trace file, an unknown version) and of opening; everything else that is odd is left out or put right and counted in Trace::lost under
// the names in trace/file_format.h. What comes out passes check_trace.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"
#include "trace/trace.h"

namespace faultline {

Result<Trace> read_trace_file(const std::string& path);
Result<Trace> read_trace_bytes(std::span<const std::uint8_t> bytes);

// Whether these first bytes of a file (eight are enough) are a trace file's.
bool looks_like_trace_file(std::span<const std::uint8_t> first_bytes);

}  // namespace faultline
