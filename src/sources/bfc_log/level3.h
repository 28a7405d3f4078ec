// Frees of a log at level 3, which say how much was asked for, but not which chunk it was.
//
// Of the chunks of that size one is free now. Which one shows later: an address that is handed out again was free before. So each free goes to the chunk of its size
// whose address is the next to be needed; that serves all of them wherever any choice does. Where several remain that are never handed out again, it may have been
// another of the same size: the sums are right, the lifetimes of those are a guess, and both are counted.
#pragma once

#include "trace/trace.h"

namespace faultline {

void settle_nameless_frees(Trace& trace);

}  // namespace faultline
