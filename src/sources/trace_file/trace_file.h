// Faultline's own traces as a source: the binary file and the text form.
#pragma once

#include <span>
#include <string>

#include "base/byte_stream.h"
#include "base/result.h"
#include "trace/trace.h"

namespace faultline {

Result<Trace> read_trace_file_source(ByteStream& stream, const std::string& path);

bool recognises_trace_text(std::span<const std::uint8_t> head);
Result<Trace> read_trace_text_source(ByteStream& stream, const std::string& path);

}  // namespace faultline
