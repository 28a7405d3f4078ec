// What a call stack says about the allocation made under it.
//
// Computed once per stack of the trace (a stack's parent always has the smaller id, so one pass from callers to callees suffices):
//  - roles: which parts of a training program the stack passes through (a module's forward, the optimizer, backward, …);
//  - user: the innermost frame of the user's own program, the line a person can change;
//  - program: the innermost user frame that is not inside a module's forward, the line of the user's own loop. One for each place, however many frames of
//    libraries, or of C++ where those were recorded too, lie between it and its callers: the first such stack stands for all. An allocator's own log (TensorFlow, JAX)
//    has no line of the program at all; there every stack is a place of its own.
// File and function names are all there is to go by; a stack that says nothing has no roles, and what follows from it is "other".
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "trace/trace.h"

namespace faultline {

enum StackRole : std::uint16_t {
  kInModuleCall = 1,  // inside some module's forward, or a function of that name
  kMovesModule = 2,   // Module.to / cuda / half: parameters and buffers
  kConstructs = 4,    // __init__, reset_parameters, build_model: memory that belongs to an object being made
  kLoadsState = 8,    // load_state_dict, torch.load, from_pretrained, …
  // the optimizer's own code, and its lazy state
  kInOptimizer = 16,
  kInitsOptimizer = 32,
  kInZeroGrad = 64,
  kInBackward = 128,
  kRecomputes = 256,  // activation checkpointing runs a forward again
  kCapturesGraph = 512,
};

// Is this file part of a library (or of no file at all) rather than of the user's program? A compiled source counts as the user's unless it lies
// where packages and build farms keep theirs.
bool is_library_file(std::string_view path);
// A frame of compiled code: no Python line stands behind it.
bool is_native_file(std::string_view path);

class StackFacts {
 public:
  explicit StackFacts(const Trace& trace);

  std::uint16_t roles(StackId stack) const { return nodes_[stack.index()].roles; }
  bool has(StackId stack, StackRole role) const { return roles(stack) & role; }
  StackId user(StackId stack) const { return nodes_[stack.index()].user; }        // 0: no user frame
  StackId program(StackId stack) const { return nodes_[stack.index()].program; }  // 0: no user frame
  // The innermost frame that has a Python line, user's or not, or a line of the user's own compiled code; 0: none.
  StackId innermost_python(StackId stack) const { return nodes_[stack.index()].python; }
  StackId line(StackId stack) const {
    return user(stack).value != 0 ? user(stack) : innermost_python(stack);
  }  // the line to show; 0: none

 private:
  struct Node {
    StackId user;
    StackId program;
    StackId python;
    std::uint16_t roles = 0;
  };
  std::vector<Node> nodes_;
};

}  // namespace faultline
