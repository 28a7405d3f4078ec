// A frame of a stack that an input tells: where a stack may have no more (tables.cpp) one is left out for it, and counted.
#pragma once

#include "trace/trace.h"

namespace faultline {

inline StackId push_frame(Trace& trace, StackId caller, FrameId frame) {
  const StackId stack = trace.stacks.push(caller, frame);
  if (trace.stacks.depth(stack) == trace.stacks.depth(caller))
    trace.count("frames of stacks that are deeper than 1,024, left out");
  return stack;
}

}  // namespace faultline
