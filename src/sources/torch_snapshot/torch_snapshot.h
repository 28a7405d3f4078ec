// The PyTorch memory snapshot as a source: what torch.cuda.memory._dump_snapshot, _snapshot, memory_snapshot and the C++ pickler write,
// PyTorch 2.0 and later, as pickle or JSON, plain or compressed.
#pragma once

#include <string>

#include "base/byte_stream.h"
#include "base/result.h"
#include "trace/trace.h"

namespace faultline {

bool looks_like_torch_snapshot(std::span<const std::uint8_t> head);
Result<Trace> read_torch_snapshot(ByteStream& stream, const std::string& path);

}  // namespace faultline
