// Reads a pickle into an ObjectMachine. Only the opcodes that plain data needs exist here; every other one (all that import, call or build
// objects) is refused by name and offset. Nothing in a pickle is ever executed.
#pragma once

#include "base/byte_stream.h"
#include "base/result.h"
#include "sources/torch_snapshot/object_machine.h"

namespace faultline::torch_snapshot {

// True when the bytes can be the start of a pickle of protocol 2 or later.
bool looks_like_pickle(std::span<const std::uint8_t> head);

// Runs to STOP; the machine's top is then the pickled object.
Status read_pickle(ByteStream& stream, ObjectMachine& machine);

}  // namespace faultline::torch_snapshot
