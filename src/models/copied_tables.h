// A new trace of the same program: everything that events refer to, and no events. Where a replay writes what it did.
#pragma once

#include "trace/trace.h"

namespace faultline {

Trace with_tables_of(const Trace& from);

}  // namespace faultline
