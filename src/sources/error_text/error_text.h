// The pasted error: what is left of a failure when all that is left is its message.
//
// Reads a message alone, a traceback, or a whole training log with the message somewhere in it; of PyTorch in every spelling since 1.0,
// CUDA, HIP, cuBLAS, cuDNN, NCCL, JAX, TensorFlow and some others. The text is hostile input: one pass over it, a bounded look around each
// place that matters, no recursion. The result is a trace with one event, AllocFailed or Fault, the stack that the traceback shows,
// and what the message states as properties:
//   error.kind        out-of-memory, illegal-address, misaligned-address, device-assert, launch-failure, cublas-alloc, cudnn-alloc, nccl-oom, …
//   error.text        the matched sentences
//   error.<x>_bytes.min, .max   each stated number as the interval of byte counts it can stand for
//   error.count, error.distinct   messages of this kind in the text, and different ones among them
//   error.survived.<n>, error.ended_by   messages before the one that ended the program (ending.h); what ended it where no message did
// sources/stated_fields.h writes them, and reads them back, typed.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/byte_stream.h"
#include "base/result.h"
#include "sources/error_text/long_text.h"
#include "trace/trace.h"

namespace faultline {

bool recognises_error_text(std::span<const std::uint8_t> head);
Result<Trace> read_error_text(ByteStream& stream, const std::string& path);
Result<Trace> read_error_text(std::string_view text, std::string path);
Result<Trace> read_error_text(LongText text, std::string path);

}  // namespace faultline
