// The log of TensorFlow's and JAX's allocator: what TF_CPP_VMODULE=bfc_allocator=4 makes it write to standard error, with whatever else was written there.
//
// Each request is three lines (asked, served, and once more with its stack) and each free two, of every thread, mixed. The order that counts is that of the lines
// "Returning:" and "F:", which are written under the allocator's lock; they name neither pool nor, on a free, the chunk, so they are joined with what the same
// thread said last. docs/bfc.md tells what becomes of it. At level 3 there are no such lines: requests then stand where their answer was written, and of a free only the
// size is known (level3.h).
//
// Everything that is not the allocator's is kept, within bounds, and read as a text: the error that ended the program, and its Python line.
#pragma once

#include <span>
#include <string>

#include "base/byte_stream.h"
#include "base/result.h"
#include "trace/trace.h"

namespace faultline {

bool looks_like_bfc_log(std::span<const std::uint8_t> head);
Result<Trace> read_bfc_log(ByteStream& stream, const std::string& path);

}  // namespace faultline
