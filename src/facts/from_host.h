// Data that the program copies to the GPU, as a recording of operations tells of each tensor.
#pragma once

#include "trace/trace.h"

namespace faultline {

inline bool is_from_host(const Trace& trace, const Event& birth) {
  const Tensor& tensor = trace.tensors.at(TensorId(birth.extra));
  return trace.strings.at(tensor.op) == "aten::_to_copy" && trace.strings.at(tensor.operands).ends_with("@cpu");
}

}  // namespace faultline
