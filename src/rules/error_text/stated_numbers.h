// The numbers of an out-of-memory message, completed by what follows from them for certain.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sources/error_text/printed_bytes.h"
#include "trace/trace.h"

namespace faultline {

struct StatedNumbers {
  std::optional<PrintedBytes> requested, capacity, free, allocated, cached, graph_pool, reserved, allowed, this_process;
  std::optional<PrintedBytes> others;  // other processes, where the message lists them
  std::vector<std::string> other_pids;
  bool found_self = false;           // this process was recognised in the list although its number there is another one
  bool processes_ambiguous = false;  // the list may or may not hold this process

  // The block that was needed can be smaller than what was asked of the driver: requests are rounded up to segments.
  PrintedBytes needed() const;
  // Of this process, outside the framework's allocator.
  std::optional<PrintedBytes> outside() const;
  // Held by neither this process's allocator nor anybody the message names.
  std::optional<PrintedBytes> unexplained() const;
};
StatedNumbers stated_numbers(const Trace& trace);

}  // namespace faultline
