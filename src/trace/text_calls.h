// The lines of the text form that define launches, copies, faults and violations, both directions side by side:
//
//   call add = launch _Z3addPfS_ grid=4,1,1 block=256,1,1 shared=1024 arguments=0:0x7f0000000000,8:0x7f0000000200
//   call up = copy from=0x7ffe00001000 host-to-device asynchronous
//   call bad = fault "Warp Illegal Address" kernel=_Z3addPfS_ file=add.cu line=7 block-index=3,0,0 thread-index=32,0,0 addresses=0x10,0x14
//   call over = violation out-of-bounds write kernel=_Z3addPfS_ file=add.cu line=7 block-index=3,0,0 thread-index=32,0,0
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
  template <class Table>
  Status read_into(Table& table, LineReader& line, Call& call);
  Status read_fields(LineReader& line, Launch& launch);
  Status read_fields(LineReader& line, Copy& copy);
  Status read_fields(LineReader& line, Fault& fault);
  Status read_fields(LineReader& line, Violation& violation);
  bool set_string(const LineReader::Field& field, std::string_view key, StringId& to);
  // True: the field was one of a place.
  Result<bool> read_place(const LineReader::Field& field, KernelPlace& place);

  Trace& trace_;
  HashMap<std::string, Call> calls_;
};

// What follows the = of a line, with its names in the order of strings_of.
std::string describe(const Trace& trace, const Launch& launch);
std::string describe(const Trace& trace, const Copy& copy);
std::string describe(const Trace& trace, const Fault& fault);
std::string describe(const Trace& trace, const Violation& violation);

}  // namespace faultline::text
