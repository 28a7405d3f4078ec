// Reads the JSON form of a snapshot into an ObjectMachine: the same values, the same lowering.
#pragma once

#include "base/byte_stream.h"
#include "base/result.h"
#include "sources/torch_snapshot/object_machine.h"

namespace faultline::torch_snapshot {

Status read_json(ByteStream& stream, ObjectMachine& machine);

}  // namespace faultline::torch_snapshot
