// What becomes of one system call of a confined program.
//
// A call that would find or change only what it may is passed on untouched. One that names something aside, or must not reach the user's file, gets
// other words for its path ("rewritten") and is then done by the kernel with all its own rules. Removing, renaming and making names is done here, on
// the layer, and the call is answered without being made.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "confine/file_layer.h"
#include "confine/given_files.h"
#include "confine/network.h"
#include "confine/processes.h"
#include "confine/tracee.h"

namespace faultline::confine {

struct Decision {
  enum class Kind : std::uint8_t { kPass, kAnswer, kRewrite, kPassAndLook };
  static constexpr int kNoArgument = -1;
  Kind kind = Kind::kPass;
  long result = 0;  // of kAnswer: what the call returns, -errno
  // of kRewrite: argument → what it shall point to; kNoArgument: what others of these point to
  std::vector<std::pair<int, std::string>> bytes;
  struct Pointer {
    std::size_t in, at, to;  // piece, byte of it, and the piece before it that it shall point to
  };
  std::vector<Pointer> pointers;                       // of kRewrite, between `bytes`
  std::vector<std::pair<int, std::uint64_t>> numbers;  // of kRewrite: argument → value
  Pending::Kind look = Pending::Kind::
      kNone;         // of kPassAndLook, and of kRewrite where that is more than usual: what to do when the call returns
  int as_call = -1;  // of kRewrite: another call that does the same

  static Decision pass() { return {}; }
  static Decision answer(long result) {
    Decision decision;
    decision.kind = Kind::kAnswer;
    decision.result = result;
    return decision;
  }
};

// The calls that `decide` wants to see, in no order.
const std::vector<int>& watched_calls();

struct Confinement {
  FileLayer& files;
  Network& network;
  Processes& processes;
  const GivenFiles& given;
  Listings& listings;
  const std::string& input;  // the standard input that is kept, as /proc names it; empty: it is not
};
Decision decide(Confinement& confinement, const Tracee& tracee, const Registers& registers);

}  // namespace faultline::confine
