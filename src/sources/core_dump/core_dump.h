// GPU core dumps, as the CUDA driver writes them when a kernel faults (CUDA_ENABLE_COREDUMP_ON_EXCEPTION=1): which kernel, which instruction and source
// line, which threads, and the addresses they went to.
//
// The trace has one Fault event for each different fault, the best told first: equal exceptions at one instruction of one launch are one, and its event
// speaks for the warp whose addresses could be rebuilt. docs/core-dumps.md says what is read and what is not.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/byte_stream.h"
#include "base/result.h"
#include "trace/trace.h"

namespace faultline {

bool looks_like_core_dump(std::span<const std::uint8_t> head);
Result<Trace> read_core_dump(ByteStream& stream, const std::string& path);
// The same of a whole dump in memory.
Result<Trace> read_core_dump(std::span<const std::uint8_t> bytes);

}  // namespace faultline
