// --op-memory NAME=SIZE[,RESULT…]: what an operation of an extension takes and gives, in the user's words.
//
//   my::op=64MiB                                  64 MiB beside its results while it runs; they are as its shape rule says, or like its first operand
//   my::op=64MiB,like=1                           its result has the shape and type of operand 1 (from 0)
//   my::op=0,shape=0.0x2*0.1x64,dtype=float16     the size of operand 0 in dimension 0, twice that in dimension 1, and 64
//   my::op=0,like=0,shape=0.0,dtype=float32       two results
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace faultline::process {

struct OperationResult {
  std::optional<std::uint64_t> like;
  std::vector<std::string> shape;
  std::string dtype;  // empty: the first operand's, or that of the one it is like
};

struct OperationMemory {
  std::string name;  // "my::op"
  std::uint64_t scratch_bytes = 0;
  std::vector<OperationResult> results;
};

Result<std::vector<OperationMemory>> operations_memory(const std::vector<std::string>& texts);

}  // namespace faultline::process
