// Which system calls of a confined program stop for Faultline to look at them: those that take a path or change a file by its descriptor, those that
// reach other machines, and reading standard input where it is to be kept. All others run at full speed. Ways around (io_uring, other ABIs, mounts)
// are refused by the kernel itself.
#pragma once

#include <linux/filter.h>

#include <vector>

namespace faultline::confine {

std::vector<sock_filter> confining_filter(bool watch_standard_input);

// In the process that is to be confined: after this its calls stop, so somebody must be tracing it. 0, or an errno. Async-signal-safe.
int confine_this_process(const std::vector<sock_filter>& filter);

}  // namespace faultline::confine
