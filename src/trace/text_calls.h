// The lines of the text form that define launches, copies and faults, both directions side by side:
//
//   call add = launch _Z3addPfS_ grid=4,1,1 block=256,1,1 shared=1024 arguments=0:0x7f0000000000,8:0x7f0000000200
//   call up = copy from=0x7ffe00001000 host-to-device asynchronous
//   call bad = fault "Warp Illegal Address" kernel=_Z3addPfS_ file=add.cu line=7 block-index=3,0,0 thread-index=32,0,0 addresses=0x10,0x14
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "base/result.h"
#include "trace/text_words.h"
#include "trace/trace.h"

namespace faultline::text {

class TextCalls {
 public:
  explicit TextCalls(Trace& trace) : trace_(trace) {}

  // The rest of a line that begins with `call`.
  Status read(LineReader& line);
  // What an event of this kind names by call=NAME.
  Status find(EventKind kind, const std::string& name, std::uint32_t& to) const;

 private:
  struct Call {
    EventKind kind;
    std::uint32_t id;
  };
  Result<Launch> read_launch(LineReader& line);
  Result<Copy> read_copy(LineReader& line);
  Result<Fault> read_fault(LineReader& line);

  Trace& trace_;
  HashMap<std::string, Call> calls_;
};

// What follows the = of a line. The strings of a launch or fault, in the order in which the reader meets them: strings_of.
std::string describe(const Trace& trace, const Launch& launch);
std::string describe(const Trace& trace, const Copy& copy);
std::string describe(const Trace& trace, const Fault& fault);
std::vector<StringId> strings_of(const Launch& launch);
std::vector<StringId> strings_of(const Fault& fault);

}  // namespace faultline::text
