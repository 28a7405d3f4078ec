// A profile of device memory as JAX writes it (jax.profiler.save_device_memory_profile): pprof's protobuf, packed with gzip.
//
// It shows one moment: each line of Python that made an array which is still alive, how many, how many bytes, on which device; and the compiled programs. What a compiled program takes while it
// runs is not in it.
#pragma once

#include <span>
#include <string>

#include "base/byte_stream.h"
#include "base/result.h"
#include "trace/trace.h"

namespace faultline {

bool looks_like_jax_profile(std::span<const std::uint8_t> head);
Result<Trace> read_jax_profile(ByteStream& stream, const std::string& path);

}  // namespace faultline
