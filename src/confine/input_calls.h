// Calls that read standard input, so that what was read can be given again.
//
// Only reads of descriptor 0 stop the program at first: to stop at every read would be slow. A program that gets another descriptor for its input (dup,
// /dev/stdin) is made to add a filter to its own, before it gets it, and stops at every read from then on, its children too.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "confine/asked.h"
#include "confine/filter.h"

namespace faultline::confine {

// `descriptor`: the argument that says what is read.
Decision input_read_call(const Asked& call, int descriptor);
Decision input_copied_call(const Asked& call);
// An open of this is another descriptor for standard input, and the reads are not seen yet.
bool opens_unseen_input(const Asked& call, const Place& place);
Decision see_all_reads();
// A filter of its own more, for the program to add to what it has: `look` tells when it has.
Decision with_filter(const std::vector<sock_filter>& filter, Pending::Kind look);

// Of a call that has returned: what it read; nothing where that cannot be told.
std::optional<std::string> bytes_read(pid_t thread, const Registers& registers);

}  // namespace faultline::confine
