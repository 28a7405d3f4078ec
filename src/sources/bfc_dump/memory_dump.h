// The file that TensorFlow and JAX write for each request that fails under TF_BFC_MEMORY_DUMP: a pool's chunks as a protobuf message (MemoryDump).
//
// It has each chunk's address, size and requested size, and operation names where the framework was built with them. It has neither the regions, which are told from the addresses, nor
// the pool's limit, nor how much was asked for.
#pragma once

#include <span>
#include <string>

#include "base/byte_stream.h"
#include "base/result.h"
#include "trace/trace.h"

namespace faultline {

bool looks_like_memory_dump(std::span<const std::uint8_t> head);
Result<Trace> read_memory_dump(ByteStream& stream, const std::string& path);

}  // namespace faultline
