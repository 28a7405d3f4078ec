// The innermost function that has something to do with an operation, whoever wrote it.
#pragma once

#include "trace/trace.h"

namespace faultline {

// The innermost Python frame of the stack that is not part of how PyTorch hands an operation on (dispatch modes, torch.compile's guards, the
// operators of torch.Tensor): it tells x.float() on the user's own line from one inside a library. 0: none.
StackId calling_frame(const Trace& trace, StackId stack);

}  // namespace faultline
