// A frame of a stack that an input tells: one beyond what a stack may have (tables.cpp) is left out, and counted.
#pragma once

#include "trace/trace.h"

namespace faultline {

inline StackId push_frame(Trace& trace, StackId caller, FrameId frame) {
  const StackId stack = trace.stacks.push(caller, frame);
  if (stack == caller) trace.count("frames of stacks that are deeper than 1,024, left out");
  return stack;
}

}  // namespace faultline
