// What a pasted error message proves, and what it cannot.
//
// A message is a handful of rounded numbers about one moment. Each number is taken as the interval it can stand for, and a cause is named
// only when it holds for every value inside; where the numbers leave two stories open, both are told and the cause stays empty. Facts about
// the allocator that the judgements rest on are on docs/error-messages.md, with the versions they hold for.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "rules/finding.h"
#include "trace/trace.h"

namespace faultline {

// The trace is one of read_error_text. Adds one finding for the failure, and what a message alone can never show to not_judged.
void judge_error_text(const Trace& trace, std::vector<Finding>& findings, std::vector<NotJudged>& not_judged);

// Where the device's bytes were at the failure, as far as the message says. The parts add up to the capacity; the numbers are rounded
// as they were printed, and `unknown` takes what no number covers.
struct ErrorAccount {
  std::uint64_t capacity = 0;
  std::uint64_t allocated = 0;          // live in the framework's allocator
  std::uint64_t cached = 0;             // held by it, not in use
  std::uint64_t outside_framework = 0;  // this process's context, libraries, communication buffers
  std::uint64_t other_processes = 0;
  std::uint64_t free = 0;
  std::uint64_t unknown = 0;
  bool oversubscribed = false;  // more is allocated than the device has: the driver lends the host's memory
};
std::optional<ErrorAccount> error_account(const Trace& trace);

}  // namespace faultline
